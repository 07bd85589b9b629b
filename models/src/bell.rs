//! A poller outside of the queue, as small as it can be.

use loom::sync::{Arc, Condvar, Mutex};
use stayfast_handoff::Consumer;

/// What a consumer sleeps on. Ringing is remembered, like an event of a poller.
#[derive(Clone)]
pub struct Bell(Arc<(Mutex<bool>, Condvar)>);

impl Bell {
    pub fn new() -> Bell {
        Bell(Arc::new((Mutex::new(false), Condvar::new())))
    }

    pub fn ring(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_one();
    }

    /// Sleeps until rung. A lost wake-up is a sleep without end, which loom reports as a deadlock.
    pub fn sleep(&self) {
        let mut rung = self.0.0.lock().unwrap();
        while !*rung {
            rung = self.0.1.wait(rung).unwrap();
        }
        *rung = false;
    }
}

/// Takes `count` items, at most `max` at once, and sleeps only when there were none.
pub fn collect(consumer: &mut Consumer<u32>, bell: &Bell, count: usize, max: usize) -> Vec<u32> {
    let mut items = Vec::new();
    while items.len() < count {
        if consumer.drain(max, |item| items.push(item)).expect("a producer lives") == 0 {
            bell.sleep();
        }
    }
    items
}
