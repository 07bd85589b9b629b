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
fn a_short_send_leaves_its_trouble_and_its_figures_behind() {
    let pair = Pair::new();
    let list = common::read(&pair.place.path("authorized"));
    std::fs::write(pair.place.path("authorized"), list.replace("in=*", "in=orders")).unwrap();
    let _hub = pair.listen(&[]);
    pair.place.run_with(&pair.send("--stream orders --timeout 30s"), b"x\n").expect(0);
    let status = pair.place.run("status edge.db").expect(0).out;
    assert!(!status.contains("no link has run") && status.contains("heard"), "{status}");
    pair.place.run_with(&pair.send("--stream logs --timeout 30s"), b"x\n").expect(1);
    assert!(pair.place.run("status edge.db").expect(1).out.contains("stream 'logs' stands still"));
}
