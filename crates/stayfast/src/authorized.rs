use crate::error::AuthorizedError;
use stayfast_handoff::Watch;
use stayfast_net::{Handle, PeerRef, PeerSpec, StartError};
use stayfast_seal::PublicKey;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often a changed file is looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// One line of a list of authorized keys: who may send what.
///
/// `KEY[,KEY] NAME [in=PATTERN[,PATTERN]]`. What follows a `#` is a comment. To change a key, list the old and the new
/// one on one line, and later remove the old one: the name keeps its cursors. A star in a pattern stands for any
/// characters; without `in=` every stream is let in.
///
/// ```
/// use stayfast::Authorized;
///
/// let line = "hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo pi3 in=orders/*,logs   # the one in the cellar";
/// let pi3 = Authorized::parse(line)?.unwrap();
/// assert_eq!((pi3.name.as_str(), pi3.patterns), ("pi3", vec!["orders/*".to_string(), "logs".to_string()]));
/// assert_eq!(Authorized::parse("  # nothing here")?, None);
/// assert!(Authorized::parse("pi3 hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo").is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorized {
    /// Its public keys.
    pub keys: Vec<PublicKey>,
    /// Its name here, which its cursors hang on.
    pub name: String,
    /// Streams it may send.
    pub patterns: Vec<String>,
}

impl Authorized {
    /// Reads one line; `None` if there is nothing in it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(line: &str) -> Result<Option<Authorized>, String> {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(keys) = words.next() else { return Ok(None) };
        let keys: Result<Vec<PublicKey>, _> = keys.split(',').map(str::parse).collect();
        let keys = keys.map_err(|error| format!("the key is {error}"))?;
        let name = words.next().ok_or("the name is missing")?.to_string();
        let mut patterns = vec!["*".to_string()];
        if let Some(word) = words.next() {
            let list = word.strip_prefix("in=").ok_or_else(|| format!("{word:?} is not understood"))?;
            patterns = list.split(',').map(str::to_string).collect();
        }
        match words.next() {
            Some(word) => Err(format!("{word:?} is not understood")),
            None => Ok(Some(Authorized { keys, name, patterns })),
        }
    }

    pub(crate) fn spec(&self) -> PeerSpec {
        let keys = self.keys.clone();
        let (hosts, outbox, psk) = (Vec::new(), None, None);
        PeerSpec { name: self.name.as_str().into(), keys, psk, hosts, outbox, allow: Some(self.patterns.clone()) }
    }
}

/// A list, by name, and what is wrong with its other lines.
type List = (BTreeMap<String, Authorized>, Vec<AuthorizedError>);

/// Reads a whole list. Lines that are not understood let nobody in, and must not keep the others from counting: a line
/// may have been removed to lock somebody out.
fn read(path: &Path) -> Result<List, AuthorizedError> {
    let failed = |e: std::io::Error| AuthorizedError::Io { path: path.to_path_buf(), what: e.to_string() };
    let text = fs::read(path).map_err(failed)?;
    let (mut list, mut wrong) = (BTreeMap::new(), Vec::new());
    for (at, line) in String::from_utf8_lossy(&text).lines().enumerate() {
        if let Err(what) = add(&mut list, line) {
            wrong.push(AuthorizedError::Line { path: path.to_path_buf(), line: at + 1, what });
        }
    }
    Ok((list, wrong))
}

/// A key or name that stands there twice would have two sets of cursors, or one for two.
fn add(list: &mut BTreeMap<String, Authorized>, line: &str) -> Result<(), String> {
    let Some(one) = Authorized::parse(line)? else { return Ok(()) };
    if list.values().any(|other| other.keys.iter().any(|key| one.keys.contains(key))) {
        return Err("this key stands in an earlier line".into());
    }
    if list.contains_key(&one.name) {
        return Err(format!("the name {:?} stands in an earlier line", one.name));
    }
    list.insert(one.name.clone(), one);
    Ok(())
}

/// The peers of a list, kept in step with the file.
pub(crate) struct Keeper {
    path: PathBuf,
    handle: Handle,
    stamp: Option<Stamp>,
    peers: BTreeMap<String, (Authorized, PeerRef)>,
    troubles: Arc<Watch<Vec<AuthorizedError>>>,
}

/// What changes when a file does: length, time, and which file it is.
#[derive(PartialEq)]
struct Stamp {
    len: u64,
    seconds: i64,
    nanos: i64,
    inode: u64,
}

impl Keeper {
    /// Adds the peers of the list, and looks every second whether it has changed.
    pub fn start(
        path: &Path,
        handle: Handle,
        troubles: Arc<Watch<Vec<AuthorizedError>>>,
    ) -> Result<(), AuthorizedError> {
        let mut keeper = Keeper { path: path.to_path_buf(), handle, stamp: None, peers: BTreeMap::new(), troubles };
        keeper.stamp = keeper.look();
        let (list, wrong) = read(path)?;
        if let Some(first) = wrong.into_iter().next() {
            return Err(first);
        }
        keeper.apply(list)?;
        let handle = keeper.handle.clone();
        handle.settle();
        handle.every(LOOK_EVERY, move || {
            keeper.again();
            true
        })?;
        Ok(())
    }

    fn look(&self) -> Option<Stamp> {
        let meta = fs::metadata(&self.path).ok()?;
        Some(Stamp { len: meta.len(), seconds: meta.mtime(), nanos: meta.mtime_nsec(), inode: meta.ino() })
    }

    /// A file that is not there changes nothing: that it is away for a moment must not lock everybody out.
    fn again(&mut self) {
        let stamp = self.look();
        if stamp == self.stamp {
            return;
        }
        self.stamp = stamp;
        let applied = read(&self.path).and_then(|(list, wrong)| {
            self.apply(list)?;
            Ok(wrong)
        });
        let troubles = applied.unwrap_or_else(|error| {
            // It may become readable without a change of the file.
            self.stamp = None;
            vec![error]
        });
        for error in &troubles {
            tracing::warn!(%error, "the list of authorized keys");
        }
        self.troubles.update(|now| *now = troubles);
    }

    fn apply(&mut self, list: BTreeMap<String, Authorized>) -> Result<(), StartError> {
        let gone: Vec<String> = self
            .peers
            .iter()
            .filter(|(name, (old, _))| list.get(*name) != Some(old))
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            if let Some((_, peer)) = self.peers.remove(&name) {
                self.handle.remove_peer(peer);
            }
        }
        for (name, one) in list {
            if !self.peers.contains_key(&name) {
                let peer = self.handle.add_peer(one.spec())?;
                self.peers.insert(name, (one, peer));
            }
        }
        Ok(())
    }
}
