//! Commands that need no network.

mod common;
use common::{Place, read};
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_key_is_made_once_and_for_nobody_else() {
    let place = Place::new();
    let made = place.run("keygen edge.key").expect(0);
    let key = made.out.trim();
    assert_eq!((key.len(), made.err.as_str()), (43, ""));
    assert_eq!(std::fs::metadata(place.path("edge.key")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(place.run("pubkey edge.key").expect(0).out.trim(), key);
    assert_eq!(place.run("pubkey edge.key --json").expect(0).json()["public_key"], key);

    let secret = read(&place.path("edge.key"));
    let again = place.run("keygen edge.key").expect(2);
    assert!(again.err.contains("exists and is kept"), "{}", again.err);
    assert_eq!(read(&place.path("edge.key")), secret);
}

#[test]
fn a_secret_that_others_can_read_is_refused_with_the_remedy() {
    let place = Place::new();
    place.run("keygen edge.key").expect(0);
    std::fs::set_permissions(place.path("edge.key"), PermissionsExt::from_mode(0o640)).unwrap();
    let refused = place.run("pubkey edge.key").expect(2);
    assert!(refused.err.contains("chmod 600 edge.key"), "{}", refused.err);
    let missing = place.run("pubkey nowhere.key").expect(2);
    assert!(missing.err.contains("stayfast keygen nowhere.key"), "{}", missing.err);
}

#[test]
fn peers_are_authorized_once_each() {
    let place = Place::new();
    let key = |name: &str| place.run(&format!("keygen {name}")).expect(0).out.trim().to_string();
    let (a, b) = (key("a.key"), key("b.key"));
    place.run(&format!("authorize {a} --name pi3 --in orders/* --in logs")).expect(0);
    assert_eq!(read(&place.path("authorized")), format!("{a} pi3 in=orders/*,logs\n"));

    let same_key = place.run(&format!("authorize {a} --name other")).expect(1);
    assert!(same_key.err.contains("authorized line 1 has this key already"), "{}", same_key.err);
    let same_name = place.run(&format!("authorize {b} --name pi3")).expect(1);
    assert!(same_name.err.contains("add the new one there with a comma"), "{}", same_name.err);
    place.run(&format!("authorize {b} --name pi4 --file other")).expect(0);
    assert_eq!(read(&place.path("other")), format!("{b} pi4\n"));
}

#[test]
fn a_line_is_added_even_after_one_without_an_end() {
    let place = Place::new();
    let key = place.run("keygen a.key").expect(0).out.trim().to_string();
    std::fs::write(place.path("authorized"), "# ours\nsomething else").unwrap();
    let added = place.run(&format!("authorize {key} --name a")).expect(0);
    assert!(added.err.contains("authorized line 2: the key is") && added.err.contains("lets nobody in"), "{added:?}");
    assert_eq!(read(&place.path("authorized")), format!("# ours\nsomething else\n{key} a\n"));
}

#[test]
fn secrets_and_nonsense_are_no_public_keys() {
    let place = Place::new();
    place.run("keygen a.key").expect(0);
    let secret = read(&place.path("a.key"));
    let refused = place.run(&format!("authorize {} --name a", secret.trim())).expect(2);
    assert!(refused.err.contains("this is a secret key"), "{}", refused.err);
    place.run("authorize short --name a").expect(2);
    assert!(!place.path("authorized").exists());
}

#[test]
fn an_outbox_is_listed_verified_and_exported() {
    let place = Place::new();
    place.outbox("edge.db", "logs", &[b"one", b"", b"three\xff"]);
    let listed = place.run("outbox ls edge.db").expect(0);
    assert_eq!(listed.out, "STREAM  PUT  STORED  WAITING  SIZE\nlogs      3       0        3   9 B\n");
    let json = place.run("outbox ls edge.db --json").expect(0).json();
    assert_eq!((&json["stream"], &json["put"], &json["waiting"]), (&"logs".into(), &3.into(), &3.into()));

    assert!(place.run("outbox verify edge.db").expect(0).out.ends_with("sound\n"));
    let from_one = place.run("outbox export edge.db --stream logs --from 1 --json").expect(0);
    let lines: Vec<serde_json::Value> = from_one.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["number"], &lines[0]["text"]), (&1.into(), &"".into()));
    assert_eq!(lines[1]["base64"], "dGhyZWX/");
    let missing = place.run("outbox export edge.db --stream log").expect(2);
    assert!(missing.err.contains("stayfast outbox ls edge.db"), "{}", missing.err);
}

#[test]
fn lines_are_exported_exactly_or_not_at_all() {
    let place = Place::new();
    place.outbox("edge.db", "logs", &[b"one", b"two\nlines"]);
    let refused = place.run("outbox export edge.db --stream logs").expect(1);
    assert_eq!(refused.out, "one\n");
    assert!(refused.err.contains("record 1 holds a line end: use --framed or --json"), "{}", refused.err);
    let framed = place.run("outbox export edge.db --stream logs --framed").expect(0);
    assert_eq!(framed.out, "\0\0\0\x03one\0\0\0\x09two\nlines");
}

#[test]
fn damage_is_found_and_named() {
    let place = Place::new();
    let path = place.outbox("edge.db", "logs", &[&[b'a'; 500], &[b'b'; 500], &[b'c'; 500]]);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(100).position(|window| window == [b'b'; 100]).expect("the record is in the file");
    bytes[at + 10] = b'x';
    std::fs::write(&path, bytes).unwrap();
    let verdict = place.run("outbox verify edge.db").expect(1);
    assert!(verdict.out.contains("logs: 1 record damaged or missing from number 1 on"), "{}", verdict.out);
    assert!(verdict.err.contains("edge.db is damaged"), "{}", verdict.err);
    let exported = place.run("outbox export edge.db --stream logs").expect(1);
    assert_eq!(exported.out.lines().count(), 2, "the sound ones");
    assert!(exported.err.contains("record 1 is damaged"), "{}", exported.err);
}

#[test]
fn files_that_are_no_outbox_are_told_apart() {
    let place = Place::new();
    std::fs::write(place.path("text"), "hello, I am no database, and that for more than a few bytes").unwrap();
    assert!(place.run("outbox ls nowhere.db").expect(2).err.contains("there is no such file"));
    assert!(!place.path("nowhere.db").exists(), "asking must not make it");
    place.run("outbox ls text").expect(1);
    place.run("status nowhere.db").expect(2);
}

#[test]
fn every_command_has_help_with_examples() {
    let place = Place::new();
    let commands = [
        "",
        "keygen",
        "pubkey",
        "authorize",
        "listen",
        "send",
        "put",
        "status",
        "outbox ls",
        "outbox verify",
        "outbox export",
        "outbox drop",
        "outbox salvage",
        "badnet",
        "demo",
        "completions",
        "man",
    ];
    for command in commands {
        let help = place.run(&format!("{command} --help")).expect(0);
        assert!(help.out.contains("  stayfast ") || command.is_empty(), "{command} has no example");
    }
    assert_eq!(place.run("no-such-command").code, Some(2));
}

#[test]
fn completions_and_manual_pages_are_made() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(place.run(&format!("completions {shell}")).expect(0).out.contains("badnet"), "{shell}");
    }
    assert!(place.run("man").expect(0).out.contains(".TH stayfast 1"));
    place.run("man --dir pages").expect(0);
    assert!(read(&place.path("pages/stayfast-send.1")).contains("outbox"));
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let place = Place::new();
    let record = vec![b'x'; 1000];
    place.outbox("edge.db", "logs", &vec![&record[..]; 1000]);
    let mut child = place.command(&["outbox", "export", "edge.db", "--stream", "logs"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr)), (Some(0), "".into()));
}
