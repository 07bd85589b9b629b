use crate::bell::{Bell, collect};
use crate::explore;
use loom::thread;
use stayfast_handoff::{Closed, PopError, PushError, queue};

/// Two producers insert, the consumer takes until the end.
fn two_producers(capacity: usize, first: &'static [u32], second: &'static [u32]) {
    let (producer, mut consumer) = queue(capacity, || ());
    let threads = [first, second].map(|items| {
        let producer = producer.clone();
        thread::spawn(move || items.iter().for_each(|n| producer.push(*n, None).unwrap()))
    });
    drop(producer);
    let mut items = Vec::new();
    while let Ok(item) = consumer.pop(None) {
        items.push(item);
    }
    assert_eq!(items.len(), first.len() + second.len());
    for expected in [first, second] {
        assert!(items.iter().filter(|n| expected.contains(n)).eq(expected), "lost, doubled or out of order");
    }
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn nothing_is_lost_or_doubled_and_each_producer_keeps_its_order() {
    explore(|| two_producers(4, &[10, 11], &[20, 21]));
}

#[test]
fn nor_when_producers_must_wait_for_room() {
    explore(|| two_producers(1, &[10], &[20]));
}

#[test]
fn a_run_of_items_passes_through_a_narrow_queue() {
    explore(|| {
        let (producer, mut consumer) = queue(2, || ());
        let thread = thread::spawn(move || producer.push_many(vec![1, 2, 3, 4, 5], None).unwrap());
        let mut items = Vec::new();
        while let Ok(item) = consumer.pop(None) {
            items.push(item);
        }
        assert_eq!(items, [1, 2, 3, 4, 5]);
        thread.join().unwrap();
    });
}

#[test]
fn a_consumer_that_sleeps_elsewhere_is_woken_for_every_item() {
    for max in [1, 8] {
        explore(move || {
            let bell = Bell::new();
            let rope = bell.clone();
            let (producer, mut consumer) = queue(8, move || rope.ring());
            let other = producer.clone();
            let thread = thread::spawn(move || [1, 2, 3].map(|n| other.try_push(n).unwrap()));
            assert_eq!(collect(&mut consumer, &bell, 3, max), [1, 2, 3]);
            thread.join().unwrap();
            drop(producer); // only now: an end would ring, too
        });
    }
}

#[test]
fn a_consumer_that_sleeps_elsewhere_is_woken_by_either_producer() {
    explore(|| {
        let bell = Bell::new();
        let rope = bell.clone();
        let (producer, mut consumer) = queue(8, move || rope.ring());
        let threads = [1, 2].map(|n| {
            let producer = producer.clone();
            thread::spawn(move || producer.try_push(n).unwrap())
        });
        let mut items = collect(&mut consumer, &bell, 2, 8);
        items.sort_unstable();
        assert_eq!(items, [1, 2]);
        for thread in threads {
            thread.join().unwrap();
        }
        drop(producer);
    });
}

#[test]
fn the_last_producer_wakes_the_consumer_to_its_end() {
    explore(|| {
        let bell = Bell::new();
        let rope = bell.clone();
        let (producer, mut consumer) = queue::<u32>(8, move || rope.ring());
        let threads = [Some(1), None].map(|item| {
            let producer = producer.clone();
            thread::spawn(move || item.map(|n| producer.try_push(n).unwrap()))
        });
        drop(producer);
        let mut items = Vec::new();
        loop {
            match consumer.drain(8, |item| items.push(item)) {
                Ok(0) => bell.sleep(),
                Ok(_) => {}
                Err(Closed) => break,
            }
        }
        assert_eq!(items, [1]);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_consumer_that_ends_frees_a_producer_that_waits() {
    explore(|| {
        let (producer, consumer) = queue(1, || ());
        let threads = [1, 2].map(|n| {
            let producer = producer.clone();
            thread::spawn(move || producer.push(n, None))
        });
        drop(consumer);
        for (n, thread) in (1..).zip(threads) {
            let result = thread.join().unwrap();
            assert!(result.is_ok() || result == Err(PushError::Closed(n)));
        }
        assert_eq!(producer.try_push(3), Err(PushError::Closed(3)));
    });
}

#[test]
fn an_item_is_either_taken_or_given_back_when_a_producer_closes() {
    explore(|| {
        let (producer, mut consumer) = queue(1, || ());
        let other = producer.clone();
        let pusher = thread::spawn(move || producer.push(1, None).is_ok());
        let closer = thread::spawn(move || other.close());
        let taken = consumer.pop(None);
        assert_eq!(taken.is_ok(), pusher.join().unwrap());
        closer.join().unwrap();
        assert_eq!(consumer.pop(None), Err(PopError::Closed));
    });
}
