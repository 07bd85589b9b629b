//! Records that the disk has damaged are lost, but never in silence.

mod common;
use common::Pair;
use stayfast::rusqlite::Connection;

/// Three records in an outbox, each put by itself, and what this statement does to them.
fn damaged(statement: &str) -> Pair {
    let pair = Pair::new();
    for n in 0..3 {
        pair.place.run(&format!("put --outbox edge.db --stream s r{n}")).expect(0);
    }
    assert_eq!(Connection::open(pair.place.path("edge.db")).unwrap().execute(statement, []), Ok(1));
    pair
}

const FLIP: &str = "UPDATE stayfast_outbox SET sum = sum + 1 WHERE first = 1";

#[test]
fn damage_is_told_by_send_by_status_and_by_the_receiver() {
    for statement in [FLIP, "DELETE FROM stayfast_outbox WHERE first = 1"] {
        let pair = damaged(statement);
        let _hub = pair.listen(&[]);
        let sent = pair.place.run(&pair.send("--stream s --timeout 30s")).expect(1);
        assert!(
            sent.err.contains("lost, because damaged or missing in edge.db: 1 record of 's' (number 1)"),
            "{sent:?}"
        );
        assert!(sent.out.contains("all stored") && sent.out.contains("but what is lost"), "{sent:?}");
        let hub = || common::read(&pair.place.path("hub.log"));
        common::until("the receiver says it", || {
            hub().contains("stream 's' of edge: record 1 was damaged or given up at the sender and cannot come")
        });
        let status = pair.place.run("status edge.db").expect(1);
        assert!(
            status.out.contains("stream 's': 1 record lost, damaged or missing in this outbox: number 1"),
            "{status:?}"
        );
        assert_eq!(pair.place.run("status edge.db --json").expect(1).json()["streams"][0]["lost"], 1);
        assert_eq!(pair.stored().iter().filter(|record| record.body.is_ok()).count(), 2);
        // Told once; what is sent later is sound.
        pair.place.run_with(&pair.send("--stream s --timeout 30s"), b"r3\n").expect(0);
        assert_eq!(hub().matches("cannot come").count(), 1, "{}", hub());
    }
}

#[test]
fn the_quarantine_can_be_seen_after_the_trim() {
    let pair = damaged(FLIP);
    let _hub = pair.listen(&["--follow"]);
    pair.place.run(&pair.send("--stream s --timeout 30s")).expect(1);
    let listed = pair.place.run("outbox ls edge.db").expect(0).out;
    assert!(listed.contains("stayfast_quarantine:\nSTREAM  FROM  RECORDS  SIZE\ns"), "{listed}");
    let verdict = pair.place.run("outbox verify edge.db --json").expect(0).json();
    assert_eq!((&verdict["quarantine"][0]["first"], &verdict["lost"]), (&1.into(), &0.into()), "{verdict}");
    let hub = common::read(&pair.place.path("hub.log"));
    assert!(hub.contains("record 1 was damaged or given up at the sender"), "{hub}");
}

#[test]
fn a_receiver_with_a_command_tells_what_it_does_not_give_to_it() {
    let pair = damaged(FLIP);
    let _hub = pair.listen(&["--exec", "cat >> got"]);
    pair.place.run(&pair.send("--stream s --timeout 30s")).expect(1);
    assert_eq!(common::read(&pair.place.path("got")), "r0\nr2\n");
    let hub = common::read(&pair.place.path("hub.log"));
    assert!(hub.contains("stream 's' of edge: record 1 was damaged or given up at the sender"), "{hub}");
}

#[test]
fn records_that_are_given_up_do_not_hold_the_rest_up() {
    let pair = Pair::new();
    pair.place.run_with(&pair.send("--stream s --no-wait"), b"a\nb\n").expect(0);
    for record in ["c", "d"] {
        pair.place.run(&format!("put --outbox edge.db --stream s {record}")).expect(0);
    }
    let drop = "outbox drop edge.db --stream s --before 3";
    let asked = pair.place.run(drop).expect(1);
    assert!(asked.err.contains("3 records of 's' would be lost") && asked.err.contains("--yes"), "{asked:?}");
    assert!(pair.place.run(&format!("{drop} --yes")).expect(0).out.contains("3 records of 's' dropped"));
    let _hub = pair.listen(&[]);
    pair.place.run(&pair.send("--stream s --timeout 30s")).expect(1);
    let stored: Vec<_> = pair.stored().into_iter().map(|record| record.body.unwrap_or_default()).collect();
    assert_eq!(stored, [&b""[..], b"", b"", b"d"], "the numbers are accounted for");
    pair.place.run("status edge.db").expect(1);
    pair.place.run("outbox drop edge.db --stream s --quarantine --yes").expect(0);
    pair.place.run("status edge.db").expect(0);
    assert!(pair.place.run("outbox drop edge.db --stream t --before 1 --yes").expect(2).err.contains("no stream 't'"));
}

#[test]
fn a_batch_is_kept_whole_and_a_link_is_not_disturbed() {
    let pair = Pair::new();
    pair.place.outbox("edge.db", "s", &[b"a", b"b", b"c"]);
    let drop = "outbox drop edge.db --stream s --before 2 --yes";
    let kept = pair.place.run(drop).expect(0);
    assert!(kept.out.contains("0 records of 's' dropped"), "{kept:?}");
    assert!(kept.err.contains("records 0 to 1 were put together with record 2"), "{kept:?}");
    let lock = stayfast_store_sqlite::LinkLock::take(&pair.place.path("edge.db")).unwrap();
    assert!(pair.place.run(drop).expect(2).err.contains("another process runs the link"));
    std::mem::drop(lock);
    pair.place.run("outbox drop edge.db --stream s --before 9 --yes --json").expect(0);
    let json = pair.place.run("outbox ls edge.db --json").expect(0).json();
    assert_eq!((&json["bytes"], &json["put"], &json["stored"]), (&0.into(), &3.into(), &0.into()));
}

#[test]
fn damage_at_the_front_of_what_waits_is_a_gap_and_no_other_history() {
    for statement in [FLIP, "DELETE FROM stayfast_outbox WHERE first IN (1, 2)"] {
        let pair = Pair::new();
        let _hub = pair.listen(&[]);
        pair.place.run_with(&pair.send("--stream s --timeout 30s"), b"r0\n").expect(0);
        for n in 1..4 {
            pair.place.run(&format!("put --outbox edge.db --stream s r{n}")).expect(0);
        }
        Connection::open(pair.place.path("edge.db")).unwrap().execute(statement, []).unwrap();
        let sent = pair.place.run(&pair.send("--stream s --timeout 20s")).expect(1);
        assert!(sent.err.starts_with("error: lost, because damaged"), "{statement}: {sent:?}");
        assert_eq!(pair.stored().len(), 4);
    }
}
