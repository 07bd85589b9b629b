//! The program as a user runs it.
// Each test program uses a part of this.
#![allow(dead_code)]

use stayfast_store_sqlite::{SqliteInbox, StoredRecord};
use std::ffi::OsStr;
use std::io::Write;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a command did.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Done {
    /// Its first line of standard output, as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.out.lines().next().unwrap_or_default()).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Panics unless it ended with this code.
    pub fn expect(self, code: i32) -> Done {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }
}

/// A folder in which commands are run.
pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stayfast"));
        command.args(arguments).current_dir(self.0.path()).env_remove("NO_COLOR");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs `stayfast` with these words, without input.
    pub fn run(&self, words: &str) -> Done {
        self.run_with(words, b"")
    }

    /// Runs `stayfast` with these words and this input.
    pub fn run_with(&self, words: &str, input: &[u8]) -> Done {
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut child = self.command(&words).spawn().unwrap();
        // It may refuse without reading.
        drop(child.stdin.take().unwrap().write_all(input));
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Done { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Damages a file.
    pub fn overwrite(&self, name: &str, at: u64, bytes: &[u8]) {
        use std::os::unix::fs::FileExt;
        let file = std::fs::OpenOptions::new().write(true).open(self.path(name)).unwrap();
        file.write_all_at(bytes, at).unwrap();
    }

    /// An outbox with one stream of these records.
    pub fn outbox(&self, name: &str, stream: &str, records: &[&[u8]]) -> PathBuf {
        use stayfast_store::Outbox;
        let path = self.path(name);
        let mut outbox = stayfast_store_sqlite::SqliteOutbox::open(&path, &Default::default()).unwrap();
        outbox.append(stream, records).unwrap();
        path
    }
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

const PATIENCE: Duration = Duration::from_secs(30);

/// A hub and an edge that know each other.
pub struct Pair {
    pub place: Place,
    pub hub: String,
    pub port: u16,
}

impl Pair {
    pub fn new() -> Pair {
        let place = Place::new();
        let key = |name: &str| place.run(&format!("keygen {name}")).expect(0).out.trim().to_string();
        let (hub, edge) = (key("hub.key"), key("edge.key"));
        place.run(&format!("authorize {edge} --name edge --in *")).expect(0);
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Pair { place, hub, port }
    }

    pub fn listen(&self, more: &[&str]) -> Killed {
        let address = format!("127.0.0.1:{}", self.port);
        let words = [&["listen", &address, "--key", "hub.key", "--inbox", "hub.db"], more].concat();
        let mut command = self.place.command(&words);
        command.stderr(std::fs::File::create(self.place.path("hub.log")).unwrap());
        Killed(command.spawn().unwrap())
    }

    pub fn send(&self, more: &str) -> String {
        format!("send 127.0.0.1:{} --peer {} --outbox edge.db {more}", self.port, self.hub)
    }

    pub fn spawn(&self, more: &str) -> Killed {
        let words = self.send(more);
        Killed(self.place.command(&words.split_whitespace().collect::<Vec<_>>()).spawn().unwrap())
    }

    /// The same, its remarks in a file.
    pub fn spawn_logged(&self, more: &str, log: &str) -> Killed {
        let words = self.send(more);
        let mut command = self.place.command(&words.split_whitespace().collect::<Vec<_>>());
        command.stderr(std::fs::File::create(self.place.path(log)).unwrap());
        Killed(command.spawn().unwrap())
    }

    /// Does no process run the link of the edge's outbox?
    pub fn is_link_free(&self) -> bool {
        stayfast_store_sqlite::LinkLock::take(&self.place.path("edge.db")).is_ok()
    }

    pub fn stored(&self) -> Vec<StoredRecord> {
        let mut inbox = SqliteInbox::open(self.place.path("hub.db"), &Default::default()).unwrap();
        inbox.records(0, 1_000_000).unwrap()
    }

    pub fn lines(&self) -> Vec<String> {
        self.stored().into_iter().map(|record| String::from_utf8(record.body.unwrap()).unwrap()).collect()
    }
}

/// A process that does not outlive its test.
pub struct Killed(pub Child);

impl Killed {
    pub fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.0.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
