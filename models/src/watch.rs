use crate::explore;
use loom::sync::Arc;
use loom::thread;
use stayfast_handoff::{WaitError, Watch};

#[test]
fn no_update_is_lost_and_the_waiter_is_woken() {
    explore(|| {
        let watch = Arc::new(Watch::new(0));
        let threads = [1, 10].map(|n| {
            let watch = watch.clone();
            thread::spawn(move || watch.update(|v| *v += n))
        });
        assert_eq!(watch.wait_until(|v| *v == 11, None), Ok(11));
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(watch.get(), 11);
    });
}

#[test]
fn each_waiter_is_woken_for_its_own_number() {
    explore(|| {
        let watch = Arc::new(Watch::new(0));
        let waiters = [1, 2].map(|n| {
            let watch = watch.clone();
            thread::spawn(move || watch.wait_until(|v| *v >= n, None))
        });
        watch.update(|v| *v += 1);
        watch.update(|v| *v += 1);
        for (n, waiter) in (1..).zip(waiters) {
            assert!(waiter.join().unwrap().unwrap() >= n);
        }
    });
}

#[test]
fn an_end_frees_a_waiter_but_does_not_hide_its_value() {
    explore(|| {
        let watch = Arc::new(Watch::new(0));
        let vain = {
            let watch = watch.clone();
            thread::spawn(move || watch.wait_until(|v| *v == 2, None))
        };
        let lucky = {
            let watch = watch.clone();
            thread::spawn(move || watch.wait_until(|v| *v == 1, None))
        };
        watch.update(|v| *v = 1);
        watch.close();
        assert_eq!(vain.join().unwrap(), Err(WaitError::Closed));
        assert_eq!(lucky.join().unwrap(), Ok(1));
    });
}
