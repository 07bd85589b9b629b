//! 200 times SIGKILL, real processes, real SQLite, a bad path; nothing missing, nothing twice.

mod common;
use common::Place;

/// Kills that must have happened.
const KILLS: u64 = 200;

#[test]
fn two_hundred_kills_lose_nothing() {
    let first = std::env::var("STAYFAST_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut seed: u64 = first.unwrap_or_else(|| u64::from(std::process::id()));
    println!("replay with STAYFAST_SEED={seed}");
    let mut killed = 0;
    while killed < KILLS {
        let place = Place::new();
        let (records, path) = ("6000x61,200x1013,40x16013", "rate=2M rtt=10ms jitter=2ms loss=1%");
        let seed_text = seed.to_string();
        let arguments = ["demo", "--seed", &seed_text, "--kills", "60", "--records", records, "--path", path];
        let output = place.command(&arguments).args(["--timeout", "60s", "--json"]).output().unwrap();
        assert!(output.status.success(), "seed {seed}: {}", String::from_utf8_lossy(&output.stderr));
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["proven"], true, "seed {seed}: {json}");
        for stream in json["streams"].as_array().unwrap() {
            assert_eq!(stream["stored"], stream["appended"], "seed {seed}: {json}");
        }
        killed += json["restarts"]["kills"].as_u64().unwrap();
        seed += 1;
    }
    println!("{killed} kills");
}
