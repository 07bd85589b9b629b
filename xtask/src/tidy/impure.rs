//! Clocks, sockets, threads, locks, files and entropy are named in their one crate only.
//!
//! In a `no_std` crate most of these names do not exist; the rule holds for the crates that have std.

use std::path::Path;

use super::Finding;
use super::source::{Token, tokens};
use crate::metadata::Crate;

struct Impurity {
    what: &'static str,
    /// Names that mean it wherever they stand.
    names: &'static [&'static str],
    /// Modules of std that mean it; the words alone are too common to refuse.
    modules: &'static [&'static str],
    /// Crates that may name it, by folder.
    allowed: &'static [&'static str],
}

const IMPURITIES: [Impurity; 6] = [
    Impurity { what: "a clock", names: &["Instant", "SystemTime", "UNIX_EPOCH"], modules: &[], allowed: &["net"] },
    Impurity {
        what: "a socket",
        names: &[
            "UdpSocket",
            "TcpStream",
            "TcpListener",
            "UnixStream",
            "UnixListener",
            "UnixDatagram",
            "ToSocketAddrs",
            "socket2",
            "quinn_udp",
            "polling",
        ],
        modules: &[],
        allowed: &["net"],
    },
    Impurity { what: "a thread", names: &["JoinHandle", "thread_local"], modules: &["thread"], allowed: &["net"] },
    Impurity {
        what: "a lock",
        names: &["Mutex", "RwLock", "Condvar", "Barrier", "OnceLock", "LazyLock", "Atomic*"],
        modules: &["atomic", "mpsc"],
        allowed: &["handoff"],
    },
    Impurity {
        what: "a file",
        names: &["rusqlite", "OpenOptions"],
        modules: &["fs"],
        // The face reads the two files that people edit, the identity and `authorized`, and lends out transactions.
        allowed: &["store-sqlite", "store-postgres", "stayfast"],
    },
    Impurity {
        what: "entropy",
        names: &["getrandom", "RandomState", "SystemRandom", "OsRng", "ThreadRng"],
        modules: &[],
        allowed: &["net", "seal", "store-sqlite", "store-postgres"],
    },
];

/// Refuses impure names in a crate on a floor; the command line and what stands beside the floors are free.
///
/// `code` is blanked and without its test modules.
pub fn check(owner: &Crate, path: &Path, code: &str) -> Vec<Finding> {
    if owner.floor.is_none() || owner.short() == "cli" {
        return Vec::new();
    }
    let tokens: Vec<_> = tokens(code).collect();
    let mut findings = Vec::new();
    let mut import = None;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "use" => import = tokens.get(at + 1).map(|root| root.text),
            ";" => import = None,
            _ => {}
        }
        for impurity in IMPURITIES.iter().filter(|i| !i.allowed.contains(&owner.short())) {
            let module = || is_std(&tokens, at, import) && impurity.modules.contains(&token.text);
            if impurity.names.iter().any(|name| matches(name, token.text)) || module() {
                let message =
                    format!("names {}, `{}`: only {} may", impurity.what, token.text, impurity.allowed.join(", "));
                findings.push(Finding::new(path, token.line, message));
            }
        }
    }
    findings
}

fn matches(name: &str, word: &str) -> bool {
    match name.strip_suffix('*') {
        Some(start) => word.len() > start.len() && word.starts_with(start),
        None => word == name,
    }
}

/// Whether the word at `at` is a module of std: in an import from it, in a path that starts there, or the start of
/// a path itself (`thread::spawn`).
fn is_std(tokens: &[Token<'_>], at: usize, import: Option<&str>) -> bool {
    let std = |name: &str| ["std", "core", "alloc"].contains(&name);
    if let Some(root) = import {
        return std(root);
    }
    let mut start = at;
    while start >= 2 && tokens[start - 1].text == "::" && tokens[start - 2].is_word() {
        start -= 2;
    }
    let leads = tokens.get(at + 1).is_some_and(|next| next.text == "::");
    std(tokens[start].text) || (start == at && leads)
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::super::source::{blank, without_tests};
    use super::*;

    fn in_crate(name: &str, text: &str) -> usize {
        let code = without_tests(&blank(text));
        check(&example(name, Some(2), &[]), Path::new("a.rs"), &code).len()
    }

    #[test]
    fn each_kind_has_its_crate() {
        for (text, allowed) in [
            ("use std::time::{Duration, Instant};", "net"),
            ("fn f() { std::time::SystemTime::now(); }", "net"),
            ("use std::net::UdpSocket;", "net"),
            ("use std::{thread, time::Duration};", "net"),
            ("fn f() { thread::spawn(g); }", "net"),
            ("use std::sync::{Arc, Mutex};", "handoff"),
            ("use core::sync::atomic::AtomicU64;", "handoff"),
            ("fn f() { std::fs::read(p); }", "store-sqlite"),
            ("use rusqlite::Connection;", "store-sqlite"),
            ("fn f() { getrandom::fill(b); }", "seal"),
        ] {
            assert_eq!(in_crate(allowed, text), 0, "{text}");
            assert_ne!(in_crate("link", text), 0, "{text}");
        }
    }

    #[test]
    fn ordinary_code_is_fine() {
        for text in [
            "use std::{sync::Arc, time::Duration}; use core::net::SocketAddr;",
            "/// Not an Instant, no Mutex.\nfn f() { g(\"std::fs\"); }",
            "use crate::fs::Thing; fn f(thread: u8) { crate::thread::run(thread) }",
            "struct Atomic; fn f() { self.fs.get() }",
            "#[cfg(test)]\nmod tests { use std::thread; use std::time::Instant; }",
        ] {
            assert_eq!(in_crate("link", text), 0, "{text}");
        }
    }

    #[test]
    fn beside_the_floors_all_is_free() {
        let code = "use std::time::Instant;";
        assert_eq!(check(&example("tests", None, &[]), Path::new("a.rs"), code), []);
        assert_eq!(check(&example("cli", Some(5), &[]), Path::new("a.rs"), code), []);
    }
}
