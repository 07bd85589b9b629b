//! `stayfast send` and `stayfast listen`: real processes, real sockets.

mod common;
use common::{Pair, until};
use std::net::UdpSocket;
use std::time::Duration;

#[test]
fn lines_are_stored_before_send_ends() {
    let pair = Pair::new();
    let _hub = pair.listen(&[]);
    let sent = pair.place.run_with(&pair.send("--stream logs --timeout 30s"), b"one\n\nthree").expect(0);
    assert!(sent.out.contains("3 records sent, all stored"), "{}", sent.out);
    assert_eq!(pair.lines(), ["one", "", "three"]);
    let record = &pair.stored()[2];
    assert_eq!((&*record.key.sender, &*record.key.stream, record.number.0), ("edge", "logs", 2));
    let status = pair.place.run("outbox ls edge.db --json").expect(0).json();
    assert_eq!((&status["put"], &status["stored"]), (&3.into(), &3.into()));
}

#[test]
fn framed_records_hold_any_bytes() {
    let pair = Pair::new();
    let _hub = pair.listen(&[]);
    let sent = pair.place.run_with(&pair.send("--stream s --framed --timeout 30s --json"), b"\0\0\0\x03a\nb\0\0\0\0");
    let json = sent.expect(0).json();
    assert_eq!((&json["first"], &json["next"], &json["stored"]), (&0.into(), &2.into(), &2.into()));
    assert_eq!(pair.lines(), ["a\nb", ""]);
}

#[test]
fn what_is_not_stored_in_time_is_kept_and_goes_later() {
    let pair = Pair::new();
    let late = pair.place.run_with(&pair.send("--stream s --timeout 2s"), b"early\n").expect(1);
    assert!(late.err.contains("timeout: 1 record sent, 1 not yet stored"), "{}", late.err);
    let status = pair.place.run("status edge.db").expect(0).out;
    assert!(status.contains(&format!("no answer from 127.0.0.1:{} yet", pair.port)), "{status}");
    let json = pair.place.run("status edge.db --json").expect(0).json();
    assert!(json["streams"][0]["oldest_seconds"].as_u64().unwrap() >= 1, "{json}");
    let _hub = pair.listen(&[]);
    pair.place.run(&pair.send("--stream s --timeout 30s")).expect(0);
    assert_eq!(pair.lines(), ["early"]);
}

#[test]
fn a_hundred_thousand_lines_survive_kills_exactly_once() {
    let pair = Pair::new();
    let mut hub = pair.listen(&[]);
    let input: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    std::fs::write(pair.place.path("seq.txt"), &input).unwrap();
    for round in 0..6 {
        let mut sender = pair.spawn("--stream seq --resume seq.txt");
        std::thread::sleep(Duration::from_millis(60 + 70 * round));
        sender.signal("-KILL");
        sender.0.wait().unwrap();
        if round % 2 == 1 {
            hub.signal("-KILL");
            hub.0.wait().unwrap();
            hub = pair.listen(&[]);
        }
    }
    pair.place.run(&pair.send("--stream seq --resume --timeout 50s seq.txt")).expect(0);
    let expected: Vec<&str> = input.lines().collect();
    assert_eq!(pair.lines(), expected);
}

#[test]
fn an_interrupt_appends_what_was_read_and_says_so() {
    let pair = Pair::new();
    let mut sender = pair.spawn("--stream s");
    let input = sender.0.stdin.take().unwrap();
    std::io::Write::write_all(&mut &input, b"one\ntwo\nunfinished").unwrap();
    let put = || pair.place.run("outbox ls edge.db --json").out.contains("\"put\":2");
    until("two records are put", put);
    sender.signal("-INT");
    let mut err = String::new();
    std::io::Read::read_to_string(sender.0.stderr.as_mut().unwrap(), &mut err).unwrap();
    assert_eq!(sender.0.wait().unwrap().code(), Some(1));
    assert!(err.contains("interrupted: 2 records of the input are durable in edge.db"), "{err}");
}

#[test]
fn another_input_cannot_be_resumed() {
    let pair = Pair::new();
    pair.place.run_with(&pair.send("--stream s --no-wait"), b"one\ntwo\n").expect(0);
    let other = pair.place.run_with(&pair.send("--stream s --resume --no-wait"), b"one\nTWO\nthree\n").expect(1);
    assert!(other.err.contains("record 1 of the input is not what stream 's' has"), "{}", other.err);
    let short = pair.place.run_with(&pair.send("--stream s --resume --no-wait"), b"one\n").expect(1);
    assert!(short.err.contains("shorter"), "{}", short.err);
    pair.place.run_with(&pair.send("--stream s --resume --no-wait"), b"one\ntwo\nthree\n").expect(0);
    assert!(pair.place.run("outbox ls edge.db --json").out.contains("\"put\":3"));
}

#[test]
fn input_that_cannot_be_a_record_is_named() {
    let pair = Pair::new();
    let long = [b"ok\n".to_vec(), vec![b'x'; 2 << 20]].concat();
    let refused = pair.place.run_with(&pair.send("--stream s --no-wait"), &long).expect(1);
    assert!(refused.err.contains("record 2 of the input is longer than 1048576 B"), "{}", refused.err);
    let cut = pair.place.run_with(&pair.send("--stream s --framed --no-wait"), b"\0\0\0\x09abc").expect(1);
    assert!(cut.err.contains("record 1 of the input is cut short"), "{}", cut.err);
}

#[test]
fn put_appends_for_a_link_that_runs() {
    let pair = Pair::new();
    let _hub = pair.listen(&[]);
    let put = pair.place.run("put --outbox edge.db --stream orders hello").expect(0);
    assert!(put.out.contains("record 0 of orders is durable"), "{}", put.out);
    let _sender = pair.spawn("--stream logs");
    until("the link takes it along", || pair.lines() == ["hello"]);
    pair.place.run_with("put --outbox edge.db --stream orders", b"all\nof it\n").expect(0);
    until("and what another process appends later", || pair.lines() == ["hello", "all\nof it\n"]);
    // A second `send` on the same outbox only appends, and waits all the same.
    pair.place.run_with(&pair.send("--stream more --timeout 30s"), b"x\n").expect(0);
    assert_eq!(pair.lines().len(), 3);
}

#[test]
fn put_with_a_host_waits() {
    let pair = Pair::new();
    let to = format!("--to 127.0.0.1:{} --peer {}", pair.port, pair.hub);
    let late = pair.place.run(&format!("put --outbox edge.db --stream s {to} --timeout 300ms a")).expect(1);
    assert!(late.err.contains("record 0 of s is durable in edge.db, but not yet stored"), "{}", late.err);
    let _hub = pair.listen(&[]);
    let put = pair.place.run(&format!("put --outbox edge.db --stream s {to} --timeout 30s --json b")).expect(0);
    assert_eq!((&put.json()["number"], &put.json()["state"]), (&1.into(), &"stored".into()));
    assert_eq!(pair.lines(), ["a", "b"]);
}

#[test]
fn a_command_stores_and_its_exit_code_decides() {
    let pair = Pair::new();
    // Fails the first time.
    let command = "cat >> got; echo $STAYFAST_FIRST-$STAYFAST_LAST $STAYFAST_SENDER $STAYFAST_STREAM >> calls; \
                   [ -e failed ] || { touch failed; exit 1; }";
    let _hub = pair.listen(&["--exec", command]);
    pair.place.run_with(&pair.send("--stream s --timeout 30s"), b"one\ntwo\n").expect(0);
    assert_eq!(common::read(&pair.place.path("got")), "one\ntwo\none\ntwo\n", "at least once, and here twice");
    assert_eq!(common::read(&pair.place.path("calls")), "0-1 edge s\n0-1 edge s\n");
    pair.place.run_with(&pair.send("--stream s --timeout 30s"), b"three\n").expect(0);
    assert!(common::read(&pair.place.path("calls")).ends_with("2-2 edge s\n"));
    assert!(common::read(&pair.place.path("hub.log")).contains("exit status: 1"));
}

#[test]
fn followed_records_are_printed() {
    let pair = Pair::new();
    let mut hub = pair.listen(&["--follow"]);
    pair.place.run_with(&pair.send("--stream s --timeout 30s"), b"one\ntwo\n").expect(0);
    hub.signal("-TERM");
    let mut out = String::new();
    std::io::Read::read_to_string(hub.0.stdout.as_mut().unwrap(), &mut out).unwrap();
    assert_eq!(hub.0.wait().unwrap().code(), Some(0));
    assert_eq!(out, "one\ntwo\n");
}

#[test]
fn a_port_in_use_is_named() {
    let pair = Pair::new();
    let _taken = UdpSocket::bind(("127.0.0.1", pair.port)).unwrap();
    let refused = pair.place.run(&format!("listen 127.0.0.1:{} --key hub.key --inbox hub.db", pair.port)).expect(2);
    assert!(refused.err.contains(&pair.port.to_string()) && refused.err.contains("in use"), "{}", refused.err);
}

#[test]
fn a_name_that_means_nothing_is_told_and_loses_nothing() {
    let pair = Pair::new();
    let words = format!("send no.such.host.invalid:1 --peer {} --outbox edge.db --stream s --timeout 2s", pair.hub);
    let unknown = pair.place.run_with(&words, b"one\n").expect(2);
    assert!(unknown.err.contains("the name 'no.such.host.invalid:1' cannot be resolved"), "{}", unknown.err);
    let _hub = pair.listen(&[]);
    pair.place.run(&pair.send("--stream s --timeout 30s")).expect(0);
    assert_eq!(pair.lines(), ["one"]);
}

#[test]
fn missing_keys_and_lists_are_told_with_the_remedy() {
    let pair = Pair::new();
    std::fs::remove_file(pair.place.path("authorized")).unwrap();
    let listen = format!("listen 127.0.0.1:{} --inbox hub.db --key", pair.port);
    let list = pair.place.run(&format!("{listen} hub.key")).expect(2);
    assert!(list.err.contains("`stayfast authorize`"), "{}", list.err);
    let key = pair.place.run(&format!("{listen} no.key")).expect(2);
    assert!(key.err.contains("`stayfast keygen no.key`"), "{}", key.err);
}

#[test]
fn a_small_outbox_holds_the_reader_back_and_loses_nothing() {
    let pair = Pair::new();
    let _hub = pair.listen(&[]);
    let input: String = (0..20_000).map(|n| format!("{n}\n")).collect();
    pair.place.run_with(&pair.send("--stream s --limit 10kB --timeout 30s"), input.as_bytes()).expect(0);
    assert_eq!(pair.lines(), input.lines().collect::<Vec<_>>());
    let never = pair.place.run_with(&pair.send("--stream s --limit 10 --timeout 30s"), b"more than ten\n").expect(1);
    assert!(
        never.err.contains("the outbox is full (0 of 10 B): what is to be appended never fits, raise the limit"),
        "{}",
        never.err
    );
}

#[test]
fn a_stream_that_is_not_let_in_is_told_with_the_remedy() {
    let pair = Pair::new();
    let list = common::read(&pair.place.path("authorized")).replace("in=*", "in=orders");
    std::fs::write(pair.place.path("authorized"), list).unwrap();
    let _hub = pair.listen(&[]);
    let refused = pair.place.run_with(&pair.send("--stream logs --timeout 30s"), b"one\ntwo\n").expect(1);
    assert!(refused.err.contains("stream 'logs' stands still"), "{}", refused.err);
    assert!(refused.err.contains("2 records of the input are durable"), "{}", refused.err);
}
