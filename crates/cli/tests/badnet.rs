//! `stayfast badnet` between two sockets.

mod common;
use common::Place;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

/// Signals, such as that another test's child has ended, are no reason to fail.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> usize {
    loop {
        match socket.recv(buffer) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            received => return received.unwrap(),
        }
    }
}

#[test]
fn datagrams_go_through_late_and_are_accounted_for() {
    let place = Place::new();
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let to = target.local_addr().unwrap().to_string();
    let mut child =
        place.command(&["badnet", "127.0.0.1:0", &to, "--rtt", "100ms", "--dup", "100%", "--json"]).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let started: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(started["path"], "rtt=100ms dup=100%");

    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sent = Instant::now();
    client.send_to(b"hello", started["listen"].as_str().unwrap()).unwrap();
    for _ in 0..2 {
        let mut buffer = [0; 10];
        assert_eq!(receive(&target, &mut buffer), 5);
    }
    assert!(sent.elapsed() >= Duration::from_millis(50));

    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    line.clear();
    out.read_to_string(&mut line).unwrap();
    let stats: serde_json::Value = serde_json::from_str(line.trim()).unwrap();
    assert_eq!((&stats["forward"]["entered"], &stats["forward"]["left"]), (&1.into(), &2.into()));
}

#[test]
fn what_is_in_the_way_is_named() {
    let place = Place::new();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let in_use = place.run(&format!("badnet {address} 127.0.0.1:1")).expect(2);
    assert!(in_use.err.contains(&format!("port {} is in use", address.port())), "{}", in_use.err);
    let elsewhere = place.run("badnet 192.0.2.1:9 127.0.0.1:1").expect(2);
    assert!(elsewhere.err.contains("192.0.2.1 is not an address of this machine"), "{}", elsewhere.err);
    let nameless = place.run("badnet 127.0.0.1:0 no.such.host.invalid:1").expect(2);
    assert!(nameless.err.contains("cannot be resolved"), "{}", nameless.err);
    let portless = place.run("badnet 127.0.0.1:0 hub").expect(2);
    assert!(portless.err.contains("is not HOST:PORT"), "{}", portless.err);
}

#[test]
fn paths_that_mean_nothing_are_refused_by_the_option() {
    let place = Place::new();
    let unit = place.run("badnet 127.0.0.1:0 127.0.0.1:1 --rtt 40parsecs").expect(2);
    assert!(unit.err.contains("`--rtt=40parsecs`: expected a time such as 40ms"), "{}", unit.err);
    let late = place.run("badnet 127.0.0.1:0 127.0.0.1:1 --late 5ms").expect(2);
    assert!(late.err.contains("`--late=5ms`: expected a share and a time or two, such as 1%:5ms"), "{}", late.err);
    let aqm = place.run("badnet 127.0.0.1:0 127.0.0.1:1 --rate 1M --aqm pie").expect(2);
    assert!(aqm.err.contains("`--aqm=pie`: expected red, codel or fq_codel"), "{}", aqm.err);
    let both = place.run("badnet 127.0.0.1:0 127.0.0.1:1 --both").expect(2);
    assert!(both.err.contains("`--both` means nothing without rate= or police="), "{}", both.err);
    place.run("badnet 127.0.0.1:0 127.0.0.1:1 --queue 1bdp").expect(2);
}
