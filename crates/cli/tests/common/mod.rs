//! The program as a user runs it.
// Each test program uses a part of this.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
