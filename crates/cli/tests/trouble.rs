//! What does not pass by itself is told: to whoever sends, and to whoever asks.

mod common;
use common::{Pair, until};
use std::io::Write;

#[test]
fn a_stream_that_stands_still_is_told_while_records_come_and_by_status() {
    let pair = Pair::new();
    let list = common::read(&pair.place.path("authorized"));
    std::fs::write(pair.place.path("authorized"), list.replace("in=*", "in=orders")).unwrap();
    let _hub = pair.listen(&[]);
    let sender = pair.spawn_logged("--stream logs", "send.log");
    let mut input = sender.0.stdin.as_ref().unwrap();
    input.write_all(b"one\n").unwrap();
    let told = || common::read(&pair.place.path("send.log"));
    let times = |text: &str| told().matches(text).count();
    until("it is told", || times("stream 'logs' stands still: the receiver refuses record 0") >= 1);
    until("and again", || times("stream 'logs' stands still") >= 2);
    until("status has it", || {
        pair.place.run("status edge.db").out.contains("stream 'logs' stands still: the receiver")
    });
    let status = pair.place.run("status edge.db --json").expect(1);
    assert!(status.json()["streams"][0]["trouble"].as_str().unwrap().contains("add a pattern"), "{status:?}");
    assert!(status.err.contains("'logs'"), "{status:?}");

    std::fs::write(pair.place.path("authorized"), list).unwrap();
    until("it is over", || told().contains("it goes on"));
    until("for status, too", || pair.place.run("status edge.db").code == Some(0));
    assert_eq!(pair.lines(), ["one"]);
}

#[test]
fn a_restored_outbox_is_told_what_parts_it_from_the_receiver() {
    let pair = Pair::new();
    let _hub = pair.listen(&[]);
    pair.place.run_with(&pair.send("--stream s --timeout 30s"), b"one\n").expect(0);
    let (db, copy) = (pair.place.path("edge.db"), pair.place.path("copy.db"));
    std::fs::copy(&db, &copy).unwrap();
    pair.place.run_with(&pair.send("--stream s --timeout 30s"), b"two\n").expect(0);
    std::fs::rename(&copy, &db).unwrap();
    let fenced = pair.place.run_with(&pair.send("--stream s --timeout 30s"), b"TWO\n").expect(1);
    assert!(fenced.err.contains("the receiver has another history from record 1 on (lineage"), "{fenced:?}");
    assert!(!fenced.err.contains("0000000000000000"), "{fenced:?}");
    assert!(pair.place.run("status edge.db").expect(1).out.contains("another history"));
    assert_eq!(pair.lines(), ["one", "two"]);
}

#[test]
fn a_receiver_that_was_restored_is_told_while_records_come() {
    let pair = Pair::new();
    let hub = pair.listen(&[]);
    pair.place.run_with(&pair.send("--stream s --timeout 30s"), b"one\n").expect(0);
    drop(hub);
    for file in ["hub.db", "hub.db-wal", "hub.db-shm"] {
        let _ = std::fs::remove_file(pair.place.path(file));
    }
    let _hub = pair.listen(&[]);
    let sender = pair.spawn_logged("--stream s", "send.log");
    sender.0.stdin.as_ref().unwrap().write_all(b"two\n").unwrap();
    let told = || common::read(&pair.place.path("send.log"));
    until("it is told", || told().contains("the receiver stands at record 0, but had stored all below 1"));
    until("status has it", || pair.place.run("status edge.db").code == Some(1));
}

#[test]
fn a_short_send_leaves_its_trouble_and_its_figures_behind() {
    let pair = Pair::new();
    let list = common::read(&pair.place.path("authorized"));
    std::fs::write(pair.place.path("authorized"), list.replace("in=*", "in=orders")).unwrap();
    let hub = pair.listen(&[]);
    pair.place.run_with(&pair.send("--stream orders --timeout 30s"), b"x\n").expect(0);
    let status = pair.place.run("status edge.db").expect(0).out;
    assert!(!status.contains("no link has run") && status.contains("heard"), "{status}");
    pair.place.run_with(&pair.send("--stream logs --timeout 30s"), b"x\n").expect(1);
    assert!(pair.place.run("status edge.db").expect(1).out.contains("stream 'logs' stands still"));
    // An inbox is no empty outbox, and looking changes nothing.
    let inbox = pair.place.run("status hub.db").expect(0).out;
    assert!(inbox.starts_with("SENDER") && inbox.lines().any(|l| l.starts_with("edge") && l.ends_with('1')), "{inbox}");
    let json = pair.place.run("status hub.db --json").expect(0).json();
    drop(hub);
    let copy = pair.place.path("copy.db").display().to_string();
    stayfast::rusqlite::Connection::open(pair.place.path("hub.db")).unwrap().execute("VACUUM INTO ?1", [copy]).unwrap();
    let bytes = || std::fs::read(pair.place.path("copy.db")).unwrap();
    let before = bytes();
    assert!(pair.place.run("status copy.db").expect(0).out.starts_with("SENDER"));
    assert!(bytes() == before, "looking has changed the copy");
    assert_eq!((&json["cursors"][0]["stream"], &json["cursors"][0]["stored"]), (&"orders".into(), &1.into()));
}

#[test]
fn a_send_that_waits_takes_the_link_over_however_the_other_ended() {
    let pair = Pair::new();
    let _hub = pair.listen(&[]);
    for (round, signal) in ["-KILL", "-TERM"].into_iter().enumerate() {
        let owner = pair.spawn_logged("--stream a", "owner.log");
        until("it runs the link", || pair.place.path("edge.db-link").exists() && !pair.is_link_free());
        let waiting = pair.spawn_logged("--stream b --timeout 20s", "waiting.log");
        let told = || common::read(&pair.place.path("waiting.log"));
        until("the second one only appends", || told().contains("another process runs the link"));
        owner.signal(signal);
        drop(owner);
        let mut waiting = waiting;
        waiting.0.stdin.take().unwrap().write_all(b"late\n").unwrap();
        let code = waiting.0.wait().unwrap().code();
        assert_eq!(code, Some(0), "{}", told());
        assert!(told().contains("the link runs here from now on"), "{}", told());
        assert_eq!(pair.lines().len(), round + 1);
    }
}

#[test]
fn each_process_counts_its_own_records() {
    let pair = Pair::new();
    let _hub = pair.listen(&[]);
    let mut one = pair.spawn("--stream s --timeout 30s");
    let mut input = one.0.stdin.take().unwrap();
    input.write_all(b"1\n").unwrap();
    until("the first is stored", || pair.lines() == ["1"]);
    for n in 2..5 {
        pair.place.run_with("put --outbox edge.db --stream s", format!("{n}").as_bytes()).expect(0);
    }
    input.write_all(b"5\n").unwrap();
    drop(input);
    let mut out = String::new();
    std::io::Read::read_to_string(one.0.stdout.as_mut().unwrap(), &mut out).unwrap();
    assert!(out.contains("2 records sent, all stored"), "{out}");
}

#[test]
fn two_that_resume_one_stream_do_not_both_append() {
    let pair = Pair::new();
    let _hub = pair.listen(&[]);
    let mut first = pair.spawn_logged("--stream s --resume --timeout 30s", "first.log");
    let mut input = first.0.stdin.take().unwrap();
    input.write_all(b"one\n").unwrap();
    until("it has begun", || pair.lines() == ["one"]);
    let second = || pair.place.run_with(&pair.send("--stream s --resume --timeout 30s"), b"one\ntwo\n");
    let refused = second().expect(2);
    assert!(refused.err.contains("another process resumes stream 's' of edge.db"), "{refused:?}");
    // Another stream is another matter.
    pair.place.run_with(&pair.send("--stream t --resume --no-wait"), b"").expect(0);
    drop(input);
    assert_eq!(first.0.wait().unwrap().code(), Some(0));
    second().expect(0);
    assert_eq!(pair.lines(), ["one", "two"]);
}

#[test]
fn records_of_others_end_a_resumed_input() {
    let pair = Pair::new();
    let mut sender = pair.spawn_logged("--stream s --resume", "send.log");
    let mut input = sender.0.stdin.take().unwrap();
    let put = |n| pair.place.run("outbox ls edge.db --json").out.contains(&format!("\"put\":{n}"));
    input.write_all(b"one\n").unwrap();
    until("it is put", || put(1));
    pair.place.run("put --outbox edge.db --stream s stranger").expect(0);
    input.write_all(b"two\n").unwrap();
    assert_eq!(sender.0.wait().unwrap().code(), Some(1));
    let told = common::read(&pair.place.path("send.log"));
    assert!(told.contains("another process has put 1 record into stream 's' meanwhile"), "{told}");
}

#[test]
fn a_send_that_only_appends_passes_on_what_the_link_has_noted() {
    let pair = Pair::new();
    let owner = pair.spawn("--stream a");
    owner.0.stdin.as_ref().unwrap().write_all(b"one\n").unwrap();
    until("it runs the link", || !pair.is_link_free());
    let waiting = pair.spawn_logged("--stream b", "waiting.log");
    waiting.0.stdin.as_ref().unwrap().write_all(b"two\n").unwrap();
    let told = || common::read(&pair.place.path("waiting.log"));
    until("nobody answers", || told().contains("no answer from 127.0.0.1"));
    // The receiver comes, and does not take stream b.
    let list = common::read(&pair.place.path("authorized"));
    std::fs::write(pair.place.path("authorized"), list.replace("in=*", "in=a")).unwrap();
    let _hub = pair.listen(&[]);
    until("b stands still", || told().contains("stream 'b' stands still: the receiver refuses record 0"));
}
