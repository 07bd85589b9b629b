//! A machine that fails: its disk, its memory.

mod common;
use common::{Pair, read, until};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// Makes syncs fail while there is a file `failsync` in the working folder.
const SYNCS: &str = r#"
#define _GNU_SOURCE
#include <unistd.h>
#include <errno.h>
#include <dlfcn.h>
static int bad(void) { if (access("failsync", F_OK)) return 0; errno = EIO; return 1; }
int fsync(int fd) { return bad() ? -1 : ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd); }
int fdatasync(int fd) { return bad() ? -1 : ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd); }
"#;

fn library(pair: &Pair) -> PathBuf {
    let (source, library) = (pair.place.path("syncs.c"), pair.place.path("syncs.so"));
    std::fs::write(&source, SYNCS).unwrap();
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).arg("-ldl").status();
    assert!(made.expect("a C compiler, as CONTRIBUTING.md says").success());
    library
}

#[test]
fn nobody_says_not_durable_of_what_a_failed_sync_has_left_behind() {
    let pair = Pair::new();
    let words = pair.send("--stream s");
    let mut command = pair.place.command(&words.split_whitespace().collect::<Vec<_>>());
    command.env("LD_PRELOAD", library(&pair)).stderr(std::fs::File::create(pair.place.path("send.log")).unwrap());
    let mut sender = common::Killed(command.spawn().unwrap());
    let mut input = sender.0.stdin.take().unwrap();
    input.write_all(b"one\n").unwrap();
    let put = |n| pair.place.run("outbox ls edge.db --json").out.contains(&format!("\"put\":{n}"));
    until("the first is there", || put(1));
    std::fs::write(pair.place.path("failsync"), "").unwrap();
    input.write_all(b"two\n").unwrap();
    assert_eq!(sender.0.wait().unwrap().code(), Some(1));
    let told = read(&pair.place.path("send.log"));
    assert!(told.contains("1 record of the input are durable, whether the next 1 record are is not known"), "{told}");
    assert!(told.contains("--resume"), "{told}");
}

#[test]
fn a_machine_without_room_for_threads_is_told_with_the_remedy() {
    let pair = Pair::new();
    pair.place.run_with(&pair.send("--stream s --no-wait"), b"one\n").expect(0);
    let program = env!("CARGO_BIN_EXE_stayfast");
    let words = pair.send("--stream s --timeout 1ms /dev/null");
    let mut told = 0;
    // From too little for anything to enough for everything.
    for memory in (8..100).map(|step| 2_000 * step) {
        let script = format!("ulimit -v {memory}; exec {program} {words}");
        let output = Command::new("sh").args(["-c", &script]).current_dir(pair.place.path("")).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() != Some(101) && !err.contains("panicked"), "{memory} kB: {err}");
        if err.contains("thread") {
            assert_eq!(output.status.code(), Some(2), "{memory} kB: {err}");
            assert!(err.contains("ulimit"), "{memory} kB: {err}");
            told += 1;
        }
    }
    assert!(told > 0, "no amount of memory was too little for threads");
}
