//! Links through what happens to them: restarts, moves, other writers, names, several sockets.

mod common;

use common::*;
use stayfast_net::{Driver, PeerSpec, Settings, StartError, Trouble, Udp, generate};
use stayfast_store::{Level, Outbox};
use stayfast_units::RecordNumber;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn a_restarted_receiver_does_not_wait_out_the_senders_back_off() {
    let mut pair = Pair::new(plain(), plain());
    pair.transfer(&records(10, &[100]));
    let address = pair.receiver.local_addresses()[0];
    drop(std::mem::replace(&mut pair.receiver, receiver(plain(), &pair.hub, &[], &pair.inbox)));
    let end = pair.put(&records(1, &[100]));
    // Long enough for the probes to be more than a second apart.
    thread::sleep(Duration::from_millis(2_500));
    let begun = Instant::now();
    pair.receiver = receiver(Udp::bind(address).unwrap(), &pair.hub, &[&pair.edge], &pair.inbox);
    pair.wait(end);
    assert!(begun.elapsed() < Duration::from_millis(500), "stored {:?} after the restart", begun.elapsed());
    assert_eq!(pair.stored().len(), 11);
}

#[test]
fn a_restarted_sender_sends_what_is_in_its_outbox() {
    let (edge, hub, outbox, inbox) = (generate().unwrap(), generate().unwrap(), Store::new(1), Store::new(2));
    let receiver = receiver(plain(), &hub, &[&edge], &inbox);
    let to = receiver.local_addresses()[0];
    let all = records(40, &[700]);
    // Nobody ever waits for a receipt: each run appends and ends at once.
    for some in all.chunks(10) {
        let sender = sender(plain(), &edge, &hub, to, &outbox);
        put(&sender.handle(), some);
    }
    let sender = sender(plain(), &edge, &hub, to, &outbox);
    let handle = sender.handle();
    let progress = handle.stored(hub_of(&handle), "s");
    progress.wait_until(|progress| progress.stored.0 == 40, LONG).unwrap();
    assert_eq!(inbox.stored("edge0", outbox.store_id(), "s"), all);
}

fn hub_of(handle: &stayfast_net::Handle) -> stayfast_net::PeerRef {
    common::hub(handle)
}

/// Forwards between a sender and a receiver, and changes its own port when told: a NAT that forgets.
fn nat(to: SocketAddr, rebind: Arc<AtomicBool>) -> SocketAddr {
    let near = UdpSocket::bind(loopback()).unwrap();
    let address = near.local_addr().unwrap();
    thread::spawn(move || {
        let mut far = UdpSocket::bind(loopback()).unwrap();
        let (mut client, mut buffer) = (None, [0; 2_048]);
        near.set_read_timeout(Some(Duration::from_micros(200))).unwrap();
        loop {
            if rebind.swap(false, Ordering::SeqCst) {
                far = UdpSocket::bind(loopback()).unwrap();
            }
            far.set_read_timeout(Some(Duration::from_micros(200))).unwrap();
            if let Ok((len, from)) = near.recv_from(&mut buffer) {
                client = Some(from);
                far.send_to(&buffer[..len], to).unwrap();
            }
            if let (Ok((len, _)), Some(client)) = (far.recv_from(&mut buffer), client) {
                near.send_to(&buffer[..len], client).unwrap();
            }
        }
    });
    address
}

// Report 8.
#[test]
fn answers_go_to_the_new_port_when_a_nat_forgets() {
    let (edge, hub, outbox, inbox) = (generate().unwrap(), generate().unwrap(), Store::new(1), Store::new(2));
    let receiver = receiver(plain(), &hub, &[&edge], &inbox);
    let rebind = Arc::new(AtomicBool::new(false));
    let through = nat(receiver.local_addresses()[0], rebind.clone());
    let sender = sender(plain(), &edge, &hub, through, &outbox);
    let handle = sender.handle();
    let progress = handle.stored(hub_of(&handle), "s");
    let known = || receiver.handle().status()[0].link.address;
    let mut ports = Vec::new();
    for _ in 0..5 {
        let end = put(&handle, &records(20, &[400]));
        progress.wait_until(|progress| progress.stored >= end, LONG).unwrap();
        ports.push(known());
        rebind.store(true, Ordering::SeqCst);
        while rebind.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        // The answer to the very next packet finds its way.
        let begun = Instant::now();
        let end = put(&handle, &records(1, &[400]));
        progress.wait_until(|progress| progress.heard >= end, LONG).unwrap();
        assert!(begun.elapsed() < Duration::from_millis(200), "{:?} after the port changed", begun.elapsed());
    }
    ports.dedup();
    assert_eq!(ports.len(), 5, "the receiver follows: {ports:?}");
}

#[test]
fn records_of_other_writers_are_sent() {
    let pair = Pair::new(plain(), plain());
    pair.transfer(&records(1, &[10]));
    let end = {
        let mut memory = pair.outbox.lock();
        memory.touch();
        memory.append("s", &[b"from another process"]).unwrap().end()
    };
    pair.wait(end);
    assert_eq!(pair.stored()[1], b"from another process");
}

#[test]
fn a_host_has_a_name_and_the_name_is_looked_up() {
    let (edge, hub, outbox, inbox) = (generate().unwrap(), generate().unwrap(), Store::new(1), Store::new(2));
    let receiver = receiver(plain(), &hub, &[&edge], &inbox);
    let port = receiver.local_addresses()[0].port();
    let spec = PeerSpec {
        hosts: vec!["no-such-host.invalid:4711".into(), format!("localhost:{port}")],
        outbox: Some(Box::new(outbox)),
        ..PeerSpec::new("hub", hub.public())
    };
    // A socket for both families, as is the default.
    let sender = Driver::spawn(&edge, Settings::default(), vec![spec], None).unwrap();
    let handle = sender.handle();
    let end = put(&handle, &records(3, &[10]));
    stored(&handle, end, &receiver.handle());
}

#[test]
fn several_sockets_serve_one_node_and_answer_from_where_they_were_asked() {
    let (hub, inbox) = (generate().unwrap(), Store::new(2));
    let edges = [generate().unwrap(), generate().unwrap()];
    let settings =
        Settings { bind: vec![loopback(), loopback()], deliveries: stayfast_net::Deliveries::Inbox, ..here() };
    let allow = |(i, edge): (usize, &stayfast_seal::Identity)| PeerSpec {
        allow: Some(vec!["*".into()]),
        ..PeerSpec::new(format!("edge{i}"), edge.public())
    };
    let peers = edges.iter().enumerate().map(allow).collect();
    let receiver = Driver::spawn(&hub, settings, peers, Some(Box::new(inbox.clone()))).unwrap();
    for (i, (edge, to)) in edges.iter().zip(receiver.local_addresses()).enumerate() {
        let outbox = Store::new(10 + i as u64);
        let sender = sender(plain(), edge, &hub, *to, &outbox);
        let handle = sender.handle();
        let end = put(&handle, &records(30, &[900]));
        stored(&handle, end, &receiver.handle());
        assert_eq!(handle.status()[0].link.address, Some(*to), "the answers came from there");
        assert_eq!(inbox.stored(&format!("edge{i}"), outbox.store_id(), "s").len(), 30);
    }
}

#[test]
fn a_stream_that_is_not_allowed_says_so() {
    let (edge, hub) = (generate().unwrap(), generate().unwrap());
    let spec = PeerSpec { allow: Some(vec!["orders/*".into()]), ..PeerSpec::new("edge0", edge.public()) };
    let receiver = Driver::spawn(&hub, here(), vec![spec], Some(Box::new(Store::new(2)))).unwrap();
    let sender = sender(plain(), &edge, &hub, receiver.local_addresses()[0], &Store::new(1));
    let handle = sender.handle();
    put(&handle, &records(1, &[10]));
    let progress = handle.stored(hub_of(&handle), "s").wait_until(|progress| progress.trouble.is_some(), LONG).unwrap();
    let trouble = progress.trouble.unwrap();
    assert!(matches!(trouble, Trouble::Refused { .. }));
    assert!(trouble.to_string().contains("add a pattern"), "{trouble}");
}

#[test]
fn a_key_that_is_not_listed_gets_silence() {
    let (edge, stranger, hub) = (generate().unwrap(), generate().unwrap(), generate().unwrap());
    let receiver = receiver(plain(), &hub, &[&edge], &Store::new(2));
    let sender = sender(plain(), &stranger, &hub, receiver.local_addresses()[0], &Store::new(1));
    let handle = sender.handle();
    put(&handle, &records(1, &[10]));
    thread::sleep(Duration::from_millis(300));
    let counters = receiver.handle().counters();
    assert!(counters.received > 0 && counters.sent == 0, "{counters:?}");
    assert_eq!(counters.rejected[stayfast_frame::Rejected::Tag as usize], counters.received);
}

#[test]
fn either_of_two_keys_is_taken() {
    let (old, new, hub) = (generate().unwrap(), generate().unwrap(), generate().unwrap());
    let (outbox, inbox) = (Store::new(1), Store::new(2));
    let mut spec = PeerSpec { allow: Some(vec!["*".into()]), ..PeerSpec::new("edge0", old.public()) };
    spec.keys.push(new.public());
    let settings = Settings { deliveries: stayfast_net::Deliveries::Inbox, ..here() };
    let receiver = Driver::spawn(&hub, settings, vec![spec], Some(Box::new(inbox.clone()))).unwrap();
    for key in [&old, &new] {
        // The same outbox under another key: the cursor hangs on the name.
        let sender = sender(plain(), key, &hub, receiver.local_addresses()[0], &outbox);
        let handle = sender.handle();
        let end = put(&handle, &records(5, &[10]));
        stored(&handle, end, &receiver.handle());
    }
    assert_eq!(inbox.stored("edge0", outbox.store_id(), "s").len(), 10);
}

#[test]
fn peers_come_and_go() {
    let (edge, hub, outbox, inbox) = (generate().unwrap(), generate().unwrap(), Store::new(1), Store::new(2));
    let receiver = receiver(plain(), &hub, &[], &inbox);
    let sender = sender(plain(), &edge, &hub, receiver.local_addresses()[0], &outbox);
    let (from, to) = (sender.handle(), receiver.handle());
    let mut stored = RecordNumber(0);
    for _ in 0..3 {
        let spec = PeerSpec { allow: Some(vec!["*".into()]), ..PeerSpec::new("edge0", edge.public()) };
        let peer = to.add_peer(spec).unwrap();
        stored = put(&from, &records(5, &[10]));
        common::stored(&from, stored, &to);
        to.remove_peer(peer);
        assert!(to.status().is_empty());
    }
    assert_eq!(inbox.stored("edge0", outbox.store_id(), "s").len() as u64, stored.0);
}

#[test]
fn figures_are_kept_where_they_can_be_read_without_the_link() {
    let pair = Pair::new(plain(), plain());
    pair.transfer(&records(10, &[100]));
    let begun = Instant::now();
    loop {
        let notes: std::collections::BTreeMap<_, _> = pair.outbox.clone().notes().unwrap().into_iter().collect();
        let figures = notes.get(&stayfast_net::Figures::key("hub")).and_then(|text| stayfast_net::Figures::parse(text));
        let heard = notes.get(&stayfast_net::Figures::heard_key("s"));
        if let (Some(figures), Some(heard)) = (figures, heard) {
            assert!(figures.packets > 0 && figures.written >= figures.last_heard && figures.last_heard > 0);
            assert_eq!((heard.as_str(), figures.address), ("10", Some(pair.receiver.local_addresses()[0])));
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{notes:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_idle_link_sleeps() {
    let pair = Pair::new(plain(), plain());
    pair.transfer(&records(10, &[100]));
    thread::sleep(Duration::from_millis(1_500));
    let wakes = || pair.sender.handle().counters().wakes + pair.receiver.handle().counters().wakes;
    let before = wakes();
    thread::sleep(Duration::from_secs(2));
    // Two of them are our own questions.
    let woken = wakes() - before;
    assert!(woken <= 10, "{woken} wakes in two seconds without anything to do");
}

#[test]
fn addresses_that_cannot_be_bound_are_told_with_a_remedy() {
    let taken = UdpSocket::bind(loopback()).unwrap().local_addr().unwrap();
    let holder = UdpSocket::bind(taken).unwrap();
    let spawn = |address: &str| {
        let settings = Settings { bind: vec![address.parse().unwrap()], ..Settings::default() };
        Driver::spawn(&generate().unwrap(), settings, Vec::new(), None).err().unwrap()
    };
    let error = spawn(&taken.to_string());
    assert!(matches!(error, StartError::PortInUse(address) if address == taken));
    assert!(error.to_string().contains("stop the program that has it"), "{error}");
    assert!(matches!(spawn("203.0.113.1:4711"), StartError::NoSuchAddress(_)));
    drop(holder);
    let none = Driver::spawn(&generate().unwrap(), Settings { bind: Vec::new(), ..here() }, Vec::new(), None);
    assert!(matches!(none.err().unwrap(), StartError::NoAddress));
}

#[test]
fn a_stopped_driver_answers_at_once() {
    let pair = Pair::new(plain(), plain());
    let (handle, into) = (pair.sender.handle(), pair.receiver.handle());
    let hub = hub_of(&handle);
    let progress = handle.stored(hub, "s");
    let waits = thread::spawn(move || progress.wait_until(|progress| progress.stored.0 > 7, None));
    let takes = thread::spawn(move || into.next_delivery(None).is_none());
    drop(pair);
    assert!(waits.join().unwrap().is_err());
    assert!(takes.join().unwrap());
    assert!(handle.is_stopped() && handle.status().is_empty());
    assert_eq!(handle.append(hub, "s", &[b"x"]), Err(stayfast_net::PutError::Stopped));
    assert!(matches!(handle.add_peer(PeerSpec::new("x", generate().unwrap().public())), Err(StartError::Stopped)));
}

#[test]
fn many_threads_append_and_share_syncs() {
    let pair = Pair::new(plain(), plain());
    let handle = pair.sender.handle();
    let hub = hub_of(&handle);
    let mut ends: Vec<_> = thread::scope(|scope| {
        let one = |i: u8| {
            let handle = handle.clone();
            scope.spawn(move || {
                (0..50).map(|n| handle.append(hub, "s", &[&[i, n]]).unwrap().first.0).collect::<Vec<_>>()
            })
        };
        let threads: Vec<_> = (0..8).map(one).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    ends.sort_unstable();
    assert_eq!(ends, (0..400).collect::<Vec<_>>(), "each record has its own number");
    pair.wait(RecordNumber(400));
    let stored = pair.stored();
    for i in 0..8 {
        let mine = stored.iter().filter(|body| body[0] == i).map(|body| body[1]);
        assert!(mine.eq(0..50), "in the order of each thread");
    }
}

#[test]
fn an_append_that_is_refused_leaves_the_others_alone() {
    let pair = Pair::new(plain(), plain());
    let handle = pair.sender.handle();
    let hub = hub_of(&handle);
    let huge = vec![0; (1 << 20) + 1];
    let (small, refused) = thread::scope(|scope| {
        let small = scope.spawn(|| (0..30).all(|_| handle.append(hub, "s", &[b"small"]).is_ok()));
        let huge = scope.spawn(|| (0..30).all(|_| handle.append(hub, "s", &[&huge]).is_err()));
        (small.join().unwrap(), huge.join().unwrap())
    });
    assert!(small && refused);
    assert_eq!(handle.append(hub, "", &[b"x"]).unwrap_err().to_string(), "a stream name has 1 to 255 bytes, not 0");
    pair.wait(RecordNumber(30));
}

#[test]
fn a_full_disk_stops_a_stream_only_as_long_as_it_is_full() {
    use stayfast_store::{Fault, On};
    let pair = Pair::new(plain(), plain());
    for fault in [Fault::DiskFull, Fault::Io, Fault::Unknown, Fault::Conflict, Fault::Stall(3)] {
        pair.inbox.lock().inject(On::Deliver, fault);
        pair.inbox.lock().inject(On::Deliver, fault);
        pair.transfer(&records(20, &[300]));
    }
    assert_eq!(pair.receiver.handle().status().len(), 1);
    assert_eq!(pair.stored().len(), 100, "and nothing twice");
    let level = stayfast_store::Inbox::level(&pair.inbox);
    assert_eq!(level, Level::Power);
}
