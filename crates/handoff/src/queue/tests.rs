use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const LONG: Option<Duration> = Some(Duration::from_secs(60));
const NOT: Option<Duration> = Some(Duration::ZERO);

/// A queue and the number of its wake-ups.
fn counted(capacity: usize) -> (Producer<u32>, Consumer<u32>, Arc<AtomicUsize>) {
    let wakes = Arc::new(AtomicUsize::new(0));
    let bell = wakes.clone();
    let (producer, consumer) = queue(capacity, move || {
        bell.fetch_add(1, Ordering::Relaxed);
    });
    (producer, consumer, wakes)
}

fn drained(consumer: &mut Consumer<u32>, max: usize) -> Vec<u32> {
    let mut items = Vec::new();
    let count = consumer.drain(max, |item| items.push(item)).unwrap();
    assert_eq!(count, items.len());
    items
}

#[test]
fn a_bell_rings_once_for_a_queue_that_fills() {
    let (producer, mut consumer, wakes) = counted(10);
    for n in 0..5 {
        producer.try_push(n).unwrap();
    }
    assert_eq!(wakes.load(Ordering::Relaxed), 1);
    assert_eq!(drained(&mut consumer, 3), [0, 1, 2]);
    producer.try_push(5).unwrap();
    assert_eq!(wakes.load(Ordering::Relaxed), 1, "items were left behind: the consumer is awake");
    assert_eq!(drained(&mut consumer, 9), [3, 4, 5]);
    producer.try_push(6).unwrap();
    assert_eq!(wakes.load(Ordering::Relaxed), 2);
}

#[test]
fn the_bound_holds_and_a_capacity_of_none_is_one() {
    let (producer, mut consumer, _) = counted(0);
    producer.try_push(1).unwrap();
    assert_eq!(producer.push(2, Some(Duration::from_millis(5))), Err(PushError::Full(2)));
    assert_eq!(producer.push_many(vec![3, 4], NOT), Err(PushError::Full(vec![3, 4])));
    assert_eq!(consumer.pop(NOT), Ok(1));
    assert_eq!(producer.push_many(vec![3, 4], NOT), Err(PushError::Full(vec![4])), "one had room");
}

#[test]
fn pop_and_drain_take_from_one_line() {
    let (producer, mut consumer, _) = counted(10);
    producer.push_many((0..6).collect(), NOT).unwrap();
    assert_eq!(consumer.pop(NOT), Ok(0));
    assert_eq!(drained(&mut consumer, 2), [1, 2]);
    assert_eq!(drained(&mut consumer, 0), []);
    assert_eq!(consumer.pop(NOT), Ok(3));
    assert_eq!(drained(&mut consumer, 9), [4, 5]);
    assert_eq!(consumer.pop(Some(Duration::from_millis(5))), Err(PopError::TimedOut));
}

#[test]
fn what_was_inserted_before_the_end_is_still_taken() {
    let (producer, mut consumer, wakes) = counted(10);
    producer.try_push(1).unwrap();
    producer.close();
    assert_eq!(wakes.load(Ordering::Relaxed), 2, "an end wakes too");
    assert!(producer.is_closed());
    assert_eq!(producer.try_push(2), Err(PushError::Closed(2)));
    assert_eq!(consumer.drain(0, |_| ()), Ok(0), "not yet at the end");
    assert_eq!(consumer.pop(LONG), Ok(1));
    assert_eq!(consumer.pop(LONG), Err(PopError::Closed));
    assert_eq!(consumer.drain(1, |_| ()), Err(Closed));
}

#[test]
fn only_the_last_producer_closes() {
    let (producer, mut consumer, wakes) = counted(1);
    let other = producer.clone();
    drop(producer);
    assert_eq!(wakes.load(Ordering::Relaxed), 0);
    assert_eq!(consumer.pop(NOT), Err(PopError::TimedOut));
    drop(other);
    assert_eq!(wakes.load(Ordering::Relaxed), 1);
    assert_eq!(consumer.pop(NOT), Err(PopError::Closed));
}

#[test]
fn a_consumer_that_ends_frees_producers_and_items() {
    let item = std::sync::Arc::new(());
    let (producer, consumer) = queue(1, || ());
    producer.try_push(item.clone()).unwrap();
    let blocked = {
        let (producer, item) = (producer.clone(), item.clone());
        thread::spawn(move || producer.push(item, LONG))
    };
    drop(consumer);
    assert!(matches!(blocked.join().unwrap(), Err(PushError::Closed(_))));
    assert_eq!(std::sync::Arc::strong_count(&item), 1, "nothing is kept");
}

#[test]
fn a_panic_in_the_middle_of_a_drain_loses_nothing_behind_it() {
    let (producer, mut consumer, _) = counted(10);
    producer.push_many((0..4).collect(), NOT).unwrap();
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        consumer.drain(9, |item| assert_ne!(item, 1, "on purpose"))
    }));
    assert!(broken.is_err());
    producer.try_push(4).unwrap();
    assert_eq!(drained(&mut consumer, 9), [2, 3, 4]);
}

#[test]
fn a_drain_may_push_into_its_own_queue() {
    let (producer, mut consumer, _) = counted(1);
    producer.try_push(1).unwrap();
    consumer.drain(1, |item| producer.try_push(item + 1).unwrap()).unwrap();
    assert_eq!(drained(&mut consumer, 9), [2]);
}

#[test]
fn threads_keep_their_order_through_a_narrow_queue() {
    const EACH: u32 = 2_000;
    let (producer, mut consumer, _) = counted(3);
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let producer = producer.clone();
            thread::spawn(move || {
                for n in 0..EACH / 2 {
                    producer.push(thread * EACH + n, LONG).unwrap();
                }
                let rest = (EACH / 2..EACH).map(|n| thread * EACH + n).collect();
                producer.push_many(rest, LONG).unwrap();
            })
        })
        .collect();
    drop(producer);
    let mut next = [0; 4];
    while let Ok(item) = consumer.pop(LONG) {
        let thread = (item / EACH) as usize;
        assert_eq!(item % EACH, next[thread]);
        next[thread] += 1;
    }
    assert_eq!(next, [EACH; 4]);
    for thread in threads {
        thread.join().unwrap();
    }
}
