//! What `stayfast listen` says and does when something around it is in the way: real processes, real files.

mod common;
use common::Place;
use std::net::UdpSocket;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// A hub whose remarks are kept, and an edge that may send to it.
struct Pair {
    place: Place,
    hub: String,
    edge: String,
    port: u16,
}

impl Pair {
    fn new() -> Pair {
        let place = Place::new();
        let key = |name: &str| place.run(&format!("keygen {name}")).expect(0).out.trim().to_string();
        let (hub, edge) = (key("hub.key"), key("edge.key"));
        place.run(&format!("authorize {edge} --name edge")).expect(0);
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Pair { place, hub, edge, port }
    }

    fn listen(&self, more: &[&str]) -> Killed {
        self.listen_with(more, |_| {})
    }

    fn listen_with(&self, more: &[&str], change: impl FnOnce(&mut Command)) -> Killed {
        let address = format!("127.0.0.1:{}", self.port);
        let mut command =
            self.place.command(&[&["listen", &address, "--key", "hub.key", "--inbox", "hub.db"], more].concat());
        command.stderr(std::fs::File::create(self.place.path("hub.log")).unwrap());
        change(&mut command);
        let hub = Killed(command.spawn().unwrap());
        self.says("listening on");
        hub
    }

    /// What the hub has said.
    fn log(&self) -> String {
        common::read(&self.place.path("hub.log"))
    }

    fn says(&self, what: &str) {
        until(|| self.log().contains(what), || format!("{what:?} is not in {}", self.log()));
    }

    fn send(&self, more: &str, input: &[u8]) -> common::Done {
        let words = format!("send 127.0.0.1:{} --peer {} --outbox edge.db {more}", self.port, self.hub);
        self.place.run_with(&words, input)
    }
}

/// A process that does not outlive its test.
struct Killed(Child);

impl Killed {
    fn signal(&self) {
        assert!(Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status().unwrap().success());
    }

    fn code(&mut self) -> Option<i32> {
        let mut status = None;
        until(
            || {
                status = self.0.try_wait().unwrap();
                status.is_some()
            },
            || "it does not end".to_string(),
        );
        status.and_then(|status| status.code())
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn until(mut holds: impl FnMut() -> bool, what: impl Fn() -> String) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{}", what());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A library that lets syncs fail while there is a file `failsync` in the working directory, and writes to files while
/// there is one `fulldisk`.
fn failing_disk(pair: &Pair) -> std::path::PathBuf {
    let (source, library) = (pair.place.path("disk.c"), pair.place.path("disk.so"));
    std::fs::write(
        &source,
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <errno.h>\n#include <unistd.h>\n\
         static int sync_as(const char *name, int fd) {\n\
             if (access(\"failsync\", F_OK) == 0) { errno = EIO; return -1; }\n\
             return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);\n\
         }\n\
         int fsync(int fd) { return sync_as(\"fsync\", fd); }\n\
         int fdatasync(int fd) { return sync_as(\"fdatasync\", fd); }\n\
         static ssize_t write_as(const char *name, int fd, const void *b, size_t n, off_t at) {\n\
             if (access(\"fulldisk\", F_OK) == 0) { errno = ENOSPC; return -1; }\n\
             return ((ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, name))(fd, b, n, at);\n\
         }\n\
         ssize_t pwrite(int fd, const void *b, size_t n, off_t at) { return write_as(\"pwrite\", fd, b, n, at); }\n\
         ssize_t pwrite64(int fd, const void *b, size_t n, off_t at) { return write_as(\"pwrite64\", fd, b, n, at); }\n",
    )
    .unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status().unwrap();
    assert!(built.success());
    library
}

#[test]
fn a_sync_that_fails_ends_listen_in_every_mode_and_no_command_runs_twice() {
    for mode in [&[][..], &["--follow"], &["--exec", "cat >> got"]] {
        let pair = Pair::new();
        let library = failing_disk(&pair);
        let mut hub = pair.listen_with(mode, |command| {
            command.env("LD_PRELOAD", library);
        });
        pair.send("--stream s --timeout 30s", b"one\n").expect(0);
        std::fs::write(pair.place.path("failsync"), "").unwrap();
        pair.send("--stream s --timeout 3s", b"two\n").expect(1);
        assert_eq!(hub.code(), Some(1), "{mode:?}");
        let log = pair.log();
        assert!(log.contains("hub.db: a sync to disk failed and is not retried"), "{mode:?}: {log}");
        if mode.contains(&"--exec") {
            assert_eq!(common::read(&pair.place.path("got")), "one\ntwo\n");
        }
    }
}

#[test]
fn a_full_disk_is_told_and_no_command_runs_twice_for_it() {
    for mode in [&[][..], &["--exec", "cat >> got"]] {
        let pair = Pair::new();
        let library = failing_disk(&pair);
        let _hub = pair.listen_with(mode, |command| {
            command.env("LD_PRELOAD", library);
        });
        pair.send("--stream s --timeout 30s", b"one\n").expect(0);
        std::fs::write(pair.place.path("fulldisk"), "").unwrap();
        pair.send("--stream s --timeout 3s", b"two\n").expect(1);
        pair.says("hub.db: the disk or its quota is full: free some space");
        std::fs::remove_file(pair.place.path("fulldisk")).unwrap();
        pair.send("--stream s --timeout 30s", b"").expect(0);
        if mode.contains(&"--exec") {
            assert_eq!(common::read(&pair.place.path("got")), "one\ntwo\n");
        } else {
            assert_eq!(pair.log().matches("the disk or its quota is full").count(), 1, "{}", pair.log());
            pair.says("hub.db: it stores again");
        }
    }
}

#[test]
fn cursors_that_cannot_be_read_end_listen() {
    let pair = Pair::new();
    {
        let _hub = pair.listen(&[]);
        pair.send("--stream s --timeout 30s", b"one\n").expect(0);
    }
    let db = rusqlite::Connection::open(pair.place.path("hub.db")).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'stayfast_cursors'";
    let page: i64 = db.query_row(root, [], |row| row.get(0)).unwrap();
    db.close().unwrap();
    pair.place.overwrite("hub.db", (page as u64 - 1) * 2048, &[0xff; 2048]);
    let mut hub = pair.listen(&[]);
    assert_eq!(hub.code(), Some(1));
    assert!(pair.log().contains("hub.db: the store is damaged"), "{}", pair.log());
}

#[test]
fn a_list_that_is_wrong_is_told_and_its_good_lines_count() {
    let pair = Pair::new();
    let _hub = pair.listen(&[]);
    pair.send("--stream s --timeout 30s", b"one\n").expect(0);
    let list = pair.place.path("authorized");
    std::fs::write(&list, format!("# {} edge\nhello there, hub\n", pair.edge)).unwrap();
    pair.says("authorized, line 2: the key is");
    let mute = pair.send("--stream s --timeout 2s", b"two\n").expect(1);
    assert!(mute.err.contains("not yet stored"), "the line was removed: {}", mute.err);
    std::fs::write(&list, format!("{} edge\n", pair.edge)).unwrap();
    pair.says("the list of authorized keys is in order again");
    pair.send("--stream s --timeout 30s", b"").expect(0);
    std::fs::remove_file(&list).unwrap();
    pair.says("authorized cannot be read");
    pair.send("--stream s --timeout 30s", b"three\n").expect(0);
}

#[test]
fn an_inbox_that_is_away_stores_nothing_and_ends_listen() {
    type Change = fn(&Pair);
    fn away(pair: &Pair, name: &str) {
        std::fs::rename(pair.place.path(name), pair.place.path("away")).unwrap();
    }
    let changes: [(&str, Change); 3] = [
        ("hub.db is gone", |pair| away(pair, "hub.db")),
        ("hub.db-wal is gone", |pair| away(pair, "hub.db-wal")),
        ("hub.db is another file now", |pair| {
            away(pair, "hub.db");
            std::fs::copy(pair.place.path("away"), pair.place.path("hub.db")).unwrap();
        }),
    ];
    for (mode, (what, change)) in [&[][..], &["--follow"], &["--exec", "cat >> got"]].iter().zip(changes) {
        let pair = Pair::new();
        let mut hub = pair.listen(mode);
        pair.send("--stream s --timeout 30s", b"one\n").expect(0);
        change(&pair);
        let sent = pair.send("--stream s --timeout 3s", b"two\n").expect(1);
        assert!(sent.err.contains("1 not yet stored"), "{}", sent.err);
        assert_eq!(hub.code(), Some(1), "{mode:?}");
        let log = pair.log();
        assert!(log.contains(what) && log.contains("then restart the process"), "{mode:?}: {log}");
        if mode.contains(&"--exec") {
            assert_eq!(common::read(&pair.place.path("got")), "one\n", "no command runs for nothing");
        }
    }
}

#[test]
fn a_bad_page_of_the_outbox_is_named_and_salvage_lets_the_rest_go_on() {
    let pair = Pair::new();
    pair.send("--stream s --no-wait", b"").expect(0);
    for n in 0..300 {
        pair.place.outbox("edge.db", "s", &[format!("{n:0500}").as_bytes()]);
    }
    let _hub = pair.listen(&[]);
    let db = rusqlite::Connection::open(pair.place.path("edge.db")).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let pages =
        "SELECT pageno FROM dbstat WHERE name = 'stayfast_outbox' AND pagetype = 'leaf' ORDER BY path LIMIT 1 OFFSET 2";
    let page: i64 = db.query_row(pages, [], |row| row.get(0)).unwrap();
    db.close().unwrap();
    pair.place.overwrite("edge.db", (page as u64 - 1) * 2048, &[0; 2048]);

    let halted = pair.send("--stream s --timeout 30s", b"").expect(1);
    assert!(halted.err.contains("the outbox cannot be read") && halted.err.contains("outbox salvage"), "{halted:?}");
    let verdict = pair.place.run("outbox verify edge.db").expect(1);
    assert!(verdict.out.contains("on pages that cannot be read from number"), "{verdict:?}");
    assert!(verdict.err.contains("`stayfast outbox salvage edge.db`"), "{verdict:?}");
    let exported = pair.place.run("outbox export edge.db --stream s").expect(1);
    assert!(exported.out.lines().count() > 100 && exported.err.contains("on pages that cannot"), "{}", exported.err);
    let salvaged = pair.place.run("outbox salvage edge.db --json").expect(0).json();
    let lost = salvaged["lost"][0]["count"].as_u64().unwrap();
    pair.send("--stream s --timeout 30s", b"");
    let hub = rusqlite::Connection::open(pair.place.path("hub.db")).unwrap();
    let count = |which: &str| {
        let count = format!("SELECT count(*) FROM stayfast_records WHERE hole IS {which}");
        hub.query_row(&count, [], |row| row.get::<_, i64>(0)).unwrap() as u64
    };
    until(|| count("NULL") + lost == 300, || "the rest arrives".to_string());
    assert_eq!(count("'gap'"), lost, "and what is lost is told");
}

/// A hub whose command hangs with a record, and the process id of something that the command has started.
fn hanging(pair: &Pair, grace: &str) -> (Killed, String) {
    let hub = pair.listen(&["--grace", grace, "--exec", "sleep 1000 & echo $! > pid.new; mv pid.new pid; wait"]);
    pair.send("--stream s --timeout 1s", b"one\n").expect(1);
    let pid = pair.place.path("pid");
    until(|| pid.exists(), || "the command does not run".to_string());
    (hub, common::read(&pid).trim().to_string())
}

fn runs(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !(state.is_empty() || state.contains(") Z "))
}

#[test]
fn a_command_that_hangs_is_told_and_killed_with_what_it_started() {
    let pair = Pair::new();
    let (mut hub, pid) = hanging(&pair, "1s");
    pair.says("the command with 1 record from number 0 on of stream 's' from edge has been running for 10s");
    assert!(runs(&pid));
    hub.signal();
    pair.says("waiting up to 1.0s for the command with 1 record");
    assert_eq!(hub.code(), Some(1));
    until(|| !runs(&pid), || "it goes on".to_string());
    assert!(pair.log().contains("the command was killed, since it did not end; its records come again"));
}

#[test]
fn a_second_signal_kills_the_command_at_once() {
    let pair = Pair::new();
    let (mut hub, pid) = hanging(&pair, "1h");
    hub.signal();
    pair.says("another signal kills it");
    assert!(runs(&pid));
    hub.signal();
    assert_eq!(hub.code(), Some(1));
    until(|| !runs(&pid), || "it goes on".to_string());
}

#[test]
fn a_command_that_ends_in_time_has_stored() {
    let pair = Pair::new();
    let mut hub = pair.listen(&["--exec", "touch runs; sleep 1; cat >> got"]);
    pair.send("--stream s --timeout 200ms", b"one\n");
    until(|| pair.place.path("runs").exists(), || "the command does not run".to_string());
    hub.signal();
    assert_eq!(hub.code(), Some(0));
    let _hub = pair.listen(&["--exec", "cat >> got"]);
    pair.send("--stream s --timeout 30s", b"").expect(0);
    assert_eq!(common::read(&pair.place.path("got")), "one\n", "once");
}

#[test]
fn a_name_from_elsewhere_does_nothing_to_the_terminal() {
    let pair = Pair::new();
    let _hub = pair.listen(&["--exec", "exit 1"]);
    let name = "x\u{1b}[31m";
    pair.place.outbox("edge.db", name, &[b"one"]);
    pair.send("--stream s --timeout 3s", b"two\n").expect(1);
    pair.says("stream 'x\\u{1b}[31m' from edge not stored");
    let listed = pair.place.run("outbox ls edge.db").expect(0).out;
    assert!(listed.contains("x\\u{1b}[31m") && !listed.contains('\u{1b}'), "{listed}");
}
