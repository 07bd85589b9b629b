//! Faults of sockets that users of comparable software have reported, each as a test.

mod common;

use common::*;
use rustix::io::Errno;
use stayfast_net::Ecn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A socket that refuses the `nth` batch of several datagrams and all after it with this error.
fn cuts_until(nth: usize, error: Errno) -> Faulty {
    let mut batches = 0;
    Faulty::new(move |call| match call {
        Call::Send(d) if d.bytes.len() > d.segment => {
            batches += 1;
            if batches >= nth { errno(error) } else { None }
        }
        _ => None,
    })
}

fn segmentation_fails(nth: usize, error: Errno) {
    let pair = Pair::new(cuts_until(nth, error), plain());
    pair.transfer(&records(300, &[1_013, 61, 4_000]));
    let counters = pair.sender.handle().counters();
    assert_eq!(counters.unsegmented, 1, "turned off once: {counters:?}");
    pair.all_left();
    assert_eq!(pair.status().bytes_resent, 0, "nothing was lost: {:?}", pair.status());
}

// Report 4.
#[test]
fn a_device_that_cannot_segment_is_found_at_the_first_batch() {
    segmentation_fails(1, Errno::IO);
}

// Report 4.
#[test]
fn segmentation_that_ends_in_mid_life_loses_nothing() {
    segmentation_fails(4, Errno::INVAL);
}

#[test]
fn a_segment_longer_than_the_interface_takes_is_not_fatal() {
    segmentation_fails(2, Errno::MSGSIZE);
}

/// Sends of datagrams over 1,300 B fail from the `nth` call on, and batches of them as on a kernel that cuts.
fn narrow_from(nth: usize, cut: Arc<AtomicUsize>) -> Faulty {
    let mut calls = 0;
    Faulty::new(move |call| {
        let Call::Send(d) = call else { return None };
        let several = d.bytes.len() > d.segment;
        calls += 1;
        if calls >= nth && d.segment.min(d.bytes.len()) > 1_300 {
            return errno(if several { Errno::INVAL } else { Errno::MSGSIZE });
        }
        cut.fetch_add(usize::from(calls >= nth && several), Ordering::Relaxed);
        None
    })
}

#[test]
fn a_probe_that_the_interface_does_not_take_is_only_a_failed_probe() {
    let cut = Arc::new(AtomicUsize::new(0));
    let pair = Pair::new(narrow_from(0, cut.clone()), plain());
    for _ in 0..3 {
        pair.transfer(&records(1_000, &[1_013]));
    }
    let (status, counters) = (pair.status(), pair.sender.handle().counters());
    assert_eq!((status.datagram, status.bytes_resent), (1_232, 0), "{status:?}");
    assert!(counters.send_errors >= 3 && counters.unsegmented == 0, "{counters:?}");
    assert!(cut.load(Ordering::Relaxed) > 0);
}

#[test]
fn an_interface_that_takes_less_than_before_costs_neither_the_link_nor_segmentation() {
    let cut = Arc::new(AtomicUsize::new(0));
    let pair = Pair::new(narrow_from(100, cut.clone()), plain());
    for _ in 0..10 {
        pair.transfer(&records(2_000, &[1_013]));
    }
    assert!(pair.status().datagram <= 1_300, "{:?}", pair.status());
    let counters = pair.sender.handle().counters();
    assert!(counters.unsegmented > 0 && cut.load(Ordering::Relaxed) > 20, "{cut:?} {counters:?}");
}

#[test]
fn no_buffers_and_full_sockets_lose_nothing() {
    for error in [Errno::NOBUFS, Errno::AGAIN] {
        let mut calls = 0;
        let faulty = Faulty::new(move |call| match call {
            Call::Send(_) => {
                calls += 1;
                if calls % 3 != 0 { errno(error) } else { None }
            }
            Call::Receive => None,
        });
        let pair = Pair::new(faulty, plain());
        pair.transfer(&records(200, &[1_013, 61]));
        assert!(pair.sender.handle().counters().waited > 0);
        pair.all_left();
        assert_eq!(pair.status().bytes_resent, 0, "{error:?} is no loss on the network");
    }
}

/// Longer than many probe timeouts on this path: none passes meanwhile, and no packet is taken for lost.
#[test]
fn a_kernel_that_has_no_room_for_long_gives_the_packets_back() {
    for error in [Errno::NOBUFS, Errno::AGAIN] {
        let (mut calls, mut since) = (0, None);
        let faulty = Faulty::new(move |call| match call {
            Call::Send(_) => {
                calls += 1;
                let full = calls > 12 && since.get_or_insert_with(Instant::now).elapsed() < Duration::from_millis(300);
                if full { errno(error) } else { None }
            }
            Call::Receive => None,
        });
        let pair = Pair::new(faulty, plain());
        pair.transfer(&records(2_000, &[1_013]));
        let handle = pair.sender.handle();
        let (counters, status) = (handle.counters(), pair.status());
        assert!(counters.returned > 0, "{error:?} {counters:?}");
        assert_eq!((status.lost, status.undos, counters.send_errors), (0, 0, 0), "{error:?} {status:?}");
        assert!(counters.returned <= 7 * 64, "one batch in 50 ms: {counters:?}");
        assert!(status.rtt < Duration::from_millis(100), "the wait is no round trip: {status:?}");
        pair.all_left();
    }
}

/// What a kernel says that does not know the control message with the ECN bits (quinn 2719).
#[test]
fn a_kernel_that_takes_no_ecn_bits_costs_the_bits_and_nothing_else() {
    for error in [Errno::IO, Errno::INVAL, Errno::OPNOTSUPP] {
        let faulty = Faulty::new(move |call| match call {
            Call::Send(d) if d.ecn != 0 => errno(error),
            _ => None,
        });
        let pair = Pair::new(faulty, plain());
        pair.transfer(&records(2_000, &[1_013]));
        let (counters, status) = (pair.sender.handle().counters(), pair.status());
        assert_eq!((counters.unmarked, counters.send_errors), (1, 0), "{counters:?}");
        pair.all_left();
        assert_eq!((status.ecn, status.lost, status.bytes_resent), (Ecn::Unusable, 0, 0), "{error:?} {status:?}");
        assert!(counters.sent / counters.send_calls.max(1) >= 2, "batches leave: {counters:?}");
    }
}

#[test]
fn an_error_of_one_datagram_is_a_lost_packet_and_not_a_dead_link() {
    let mut calls = 0;
    let faulty = Faulty::new(move |call| match call {
        Call::Send(d) if d.bytes.len() <= d.segment => {
            calls += 1;
            if calls <= 2 { errno(Errno::IO) } else { None }
        }
        _ => None,
    });
    let pair = Pair::new(faulty, plain());
    pair.transfer(&records(20, &[500]));
    assert!(pair.sender.handle().counters().send_errors >= 1);
}

/// The bits that leave one socket arrive at the other, in batches too, over both families.
#[test]
fn data_is_marked_and_the_marks_arrive() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let bound = || stayfast_net::Udp::bind(address.parse().unwrap());
        let (Ok(here), Ok(there)) = (bound(), bound()) else { continue };
        let pair = Pair::new(here, there);
        pair.transfer(&records(2_000, &[1_013]));
        let (status, counters) = (pair.status(), pair.sender.handle().counters());
        assert_eq!((status.ecn, status.marks, counters.unmarked), (Ecn::InUse, 0, 0), "{address}: {status:?}");
        assert!(counters.sent / counters.send_calls.max(1) >= 2, "batches leave: {counters:?}");
    }
}

// Report 6.
#[test]
fn unreachable_errors_of_one_peer_leave_the_others_alone() {
    // A listener that is told of a dead peer at every other receive, and whose sends to it fail.
    let dead = std::net::UdpSocket::bind(loopback()).unwrap().local_addr().unwrap();
    let mut calls = 0;
    let faulty = Faulty::new(move |call| match call {
        Call::Send(d) if d.to == dead => errno(Errno::HOSTUNREACH),
        Call::Send(_) => None,
        Call::Receive => {
            calls += 1;
            if calls % 2 == 0 { errno(Errno::CONNREFUSED) } else { None }
        }
    });
    let pair = Pair::new(plain(), faulty);
    // The hub also sends, to nobody.
    let nobody = stayfast_net::generate().unwrap();
    let outbox = Store::new(3);
    let spec = stayfast_net::PeerSpec {
        hosts: vec![dead.to_string()],
        outbox: Some(Box::new(outbox)),
        ..stayfast_net::PeerSpec::new("nobody", nobody.public())
    };
    let handle = pair.receiver.handle();
    let peer = handle.add_peer(spec).unwrap();
    handle.append(peer, "s", &[b"to nobody"]).unwrap();
    for _ in 0..3 {
        pair.transfer(&records(50, &[300]));
    }
    let counters = handle.counters();
    assert!(counters.receive_errors > 0 && counters.send_errors > 0, "{counters:?}");
    assert_eq!(pair.status().bytes_resent, 0);
}

#[test]
fn a_closed_port_for_real() {
    let pair = Pair::new(plain(), plain());
    let dead = std::net::UdpSocket::bind(loopback()).unwrap().local_addr().unwrap();
    let nobody = stayfast_net::generate().unwrap();
    let spec = stayfast_net::PeerSpec {
        hosts: vec![dead.to_string()],
        outbox: Some(Box::new(Store::new(3))),
        ..stayfast_net::PeerSpec::new("nobody", nobody.public())
    };
    let handle = pair.sender.handle();
    let peer = handle.add_peer(spec).unwrap();
    handle.append(peer, "s", &[b"to nobody"]).unwrap();
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(50));
        pair.transfer(&records(10, &[300]));
    }
    assert_eq!(pair.status().bytes_resent, 0);
}

// Report 6.
#[test]
fn a_listener_outlives_peers_that_die() {
    let pair = Pair::new(plain(), plain());
    let (listener, to) = (pair.receiver.handle(), pair.receiver.local_addresses()[0]);
    for round in 0..5 {
        let edge = stayfast_net::generate().unwrap();
        let allow = Some(vec!["*".to_string()]);
        let spec =
            stayfast_net::PeerSpec { allow, ..stayfast_net::PeerSpec::new(format!("dying{round}"), edge.public()) };
        listener.add_peer(spec).unwrap();
        // It ends in the midst of what it sends, and the answers find its port closed.
        let dying = sender(plain(), &edge, &pair.hub, to, &Store::new(10 + round));
        put(&dying.handle(), &records(2_000, &[1_000]));
        let progress = dying.handle().stored(hub(&dying.handle()), "s");
        progress.wait_until(|progress| progress.heard.0 > 0, LONG).unwrap();
        drop(dying);
        pair.transfer(&records(50, &[300]));
    }
    assert_eq!(pair.status().bytes_resent, 0);
}

// Report 7.
#[test]
fn coalesced_receives_are_not_cut() {
    let pair = Pair::new(plain(), plain());
    pair.transfer(&records(2_000, &[1_013]));
    let (out, into) = (pair.sender.handle().counters(), pair.receiver.handle().counters());
    assert_eq!(into.truncated, 0);
    assert!(out.sent / out.send_calls.max(1) >= 2, "batches leave: {out:?}");
    assert!(into.received / into.receive_calls.max(1) >= 2, "batches arrive: {into:?}");
}

// Report 7.
#[test]
fn a_receive_that_is_cut_is_counted_and_made_good() {
    // Room for four datagrams, where the kernel may put 54 together.
    let receiving = Faulty { room: 4 * 1_200, ..Faulty::new(|_| None) };
    let pair = Pair::new(plain(), receiving);
    pair.transfer(&records(300, &[1_013]));
    assert!(pair.receiver.handle().counters().truncated > 0);
}

// Report 16.
#[test]
fn a_slow_store_does_not_stop_acknowledgements() {
    let slow = Store { slow: Duration::from_millis(400), ..Store::new(2) };
    let pair = Pair::with(plain(), plain(), slow);
    let end = pair.put(&records(1_000, &[300]));
    // The first batch is with the store; acknowledgements come while it sleeps.
    let handle = pair.sender.handle();
    let progress = handle.stored(hub(&handle), "s");
    let begun = Instant::now();
    progress.wait_until(|progress| progress.heard >= end, LONG).unwrap();
    assert!(begun.elapsed() < Duration::from_millis(350), "heard after {:?}", begun.elapsed());
    assert!(progress.get().stored < end, "the store is slow");
    pair.wait(end);
    let status = pair.status();
    assert_eq!(status.bytes_resent, 0, "{status:?}");
    assert!(status.rtt < Duration::from_millis(100), "{status:?}");
}

// Report 16.
#[test]
fn an_application_that_thinks_does_not_stop_acknowledgements() {
    let (edge, hub_key) = (stayfast_net::generate().unwrap(), stayfast_net::generate().unwrap());
    let allowed =
        stayfast_net::PeerSpec { allow: Some(vec!["*".into()]), ..stayfast_net::PeerSpec::new("edge0", edge.public()) };
    let inbox = Box::new(Store::new(2));
    let receiver = stayfast_net::Driver::spawn(&hub_key, here(), vec![allowed], Some(inbox)).unwrap();
    let sender = sender(plain(), &edge, &hub_key, receiver.local_addresses()[0], &Store::new(1));
    let handle = sender.handle();
    let end = put(&handle, &records(500, &[300]));
    let progress = handle.stored(hub(&handle), "s");
    // Nobody takes a batch, and all is heard.
    progress.wait_until(|progress| progress.heard >= end, LONG).unwrap();
    assert_eq!(progress.get().stored.0, 0);
    // A batch that is dropped comes again, the same.
    let first = receiver.handle().next_delivery(LONG).unwrap();
    let dropped = first.delivery.clone();
    drop(first);
    let again = receiver.handle().next_delivery(LONG).unwrap();
    assert_eq!(again.delivery, dropped);
    again.stored(stayfast_store::Level::Power);
    progress.wait_until(|progress| progress.stored == dropped.to.next, LONG).unwrap();
}

/// Datagrams wait in the kernel while the receiver looks away; then all of them come in one pass.
#[test]
fn a_train_that_came_in_one_pass_is_acknowledged_once() {
    let looks = Arc::new(AtomicBool::new(true));
    let open = looks.clone();
    let receiving = Faulty::new(move |call| match call {
        Call::Receive if !open.load(Ordering::Relaxed) => errno(Errno::AGAIN),
        _ => None,
    });
    // STORED, which travels on its own, comes later.
    let pair = Pair::with(plain(), receiving, Store { slow: Duration::from_millis(200), ..Store::new(2) });
    // The window grows to more than a train, and the last STORED is acknowledged.
    pair.transfer(&records(500, &[1_013]));
    std::thread::sleep(Duration::from_millis(50));
    let (sender, receiver) = (pair.sender.handle(), pair.receiver.handle());
    for _ in 0..5 {
        looks.store(false, Ordering::Relaxed);
        let (left, before) = (sender.counters().sent, receiver.counters());
        let end = pair.put(&records(30, &[1_013]));
        let begun = Instant::now();
        while sender.counters().sent < left + 20 {
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", pair.status());
        }
        looks.store(true, Ordering::Relaxed);
        let heard = || sender.stored(hub(&sender), "s").get().heard;
        while heard() < end {
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", pair.status());
        }
        let after = receiver.counters();
        let (came, went) = (after.received - before.received, after.sent - before.sent);
        // What left after the receiver looked again may come in passes of its own.
        let most = 2 + came.saturating_sub(20) / 2;
        assert!(came >= 20 && went <= most, "{came} datagrams came, {went} went back");
        pair.wait(end);
        std::thread::sleep(Duration::from_millis(50));
    }
}
