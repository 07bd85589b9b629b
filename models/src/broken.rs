//! With a mistake planted in each, the models must see it: here a sleep without end.

use crate::bell::{Bell, collect};
use crate::explore;
use loom::sync::Arc;
use loom::thread;
use stayfast_handoff::{Watch, queue};

#[test]
#[should_panic(expected = "deadlock")]
fn a_push_that_looks_too_early_loses_the_wake_up_of_a_poller() {
    explore(|| {
        let bell = Bell::new();
        let rope = bell.clone();
        let (producer, mut consumer) = queue(8, move || rope.ring());
        let other = producer.clone();
        let thread = thread::spawn(move || [1, 2].map(|n| other.try_push(n).unwrap()));
        assert_eq!(collect(&mut consumer, &bell, 2, 8), [1, 2]);
        thread.join().unwrap();
        drop(producer);
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_push_that_looks_too_early_loses_the_wake_up_of_pop() {
    explore(|| {
        let (producer, mut consumer) = queue(8, || ());
        let other = producer.clone();
        let thread = thread::spawn(move || [1, 2].map(|n| other.try_push(n).unwrap()));
        assert_eq!([(); 2].map(|()| consumer.pop(None).unwrap()), [1, 2]);
        thread.join().unwrap();
        drop(producer);
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn an_update_that_looks_too_early_loses_the_wake_up_of_a_waiter() {
    explore(|| {
        let watch = Arc::new(Watch::new(0));
        let other = watch.clone();
        let thread = thread::spawn(move || other.update(|v| *v = 1));
        assert_eq!(watch.wait_until(|v| *v == 1, None), Ok(1));
        thread.join().unwrap();
    });
}
