//! `stayfast demo`, small.

mod common;
use common::Place;

#[test]
fn a_small_demo_is_proven() {
    let place = Place::new();
    let demo = place.run("demo --seed 7 --kills 6 --records 2000x61,60x1013,9x16013 --dir look --timeout 45s --json");
    let json = demo.expect(0).json();
    assert_eq!(json["proven"], true);
    assert_eq!((&json["seed"], &json["streams"][0]["stored"]), (&7.into(), &2000.into()));
    let kills = json["restarts"]["kills"].as_u64().unwrap();
    assert!((1..=6).contains(&kills), "{json}");
    // What it leaves behind can be looked at.
    assert_eq!(place.run("outbox ls look/edge.db --json").expect(0).json()["stored"], 60);
    let again = place.run("demo --seed 7 --dir look").expect(2);
    assert!(again.err.contains("holds databases already"), "{}", again.err);
}

#[test]
fn a_file_is_sent_line_by_line() {
    let place = Place::new();
    let lines: String = (0..3000).map(|n| format!("line {n}\n")).collect();
    std::fs::write(place.path("file"), lines).unwrap();
    let demo = place.run("demo --seed 3 --kills 0 --file file --timeout 45s").expect(0);
    assert!(demo.out.contains("PROOF: 3,000 records"), "{}", demo.out);
}

#[test]
fn a_short_file_is_repeated_until_all_kills_have_happened() {
    let place = Place::new();
    std::fs::write(place.path("file"), "x".repeat(999) + "\n").unwrap();
    let demo = place.run("demo --seed 3 --kills 4 --file file --timeout 45s --json").expect(0);
    let json = demo.json();
    assert!(demo.err.contains("file is sent 1129 times over"), "{}", demo.err);
    assert_eq!((&json["restarts"]["kills"], &json["streams"][0]["stored"]), (&4.into(), &1129.into()), "{json}");
    std::fs::write(place.path("empty"), "").unwrap();
    let empty = place.run("demo --file empty").expect(2);
    assert!(empty.err.contains("the file has no lines"), "{}", empty.err);
}

#[test]
fn a_demo_that_cannot_finish_fails() {
    let place = Place::new();
    let demo = place.run("demo --records 10x61 --kills 0 --path loss=100% --timeout 1s").expect(1);
    assert!(demo.err.contains("timeout: 0 of 10 records stored"), "{}", demo.err);
    let nonsense = place.run("demo --path rtt=1parsec").expect(2);
    assert!(nonsense.err.contains("--path: `rtt=1parsec`"), "{}", nonsense.err);
}
