use crate::chores::Resolve;
use crate::handle::Handle;
use crate::outbox::OutboxRequest;
use crate::shared::{PeerRef, Progress, Trouble};
use crate::status::{Figures, heard_note};
use stayfast_handoff::{Producer, PushError, Watch};
use stayfast_link::PeerId;
use stayfast_store::StoreOp;
use stayfast_units::RecordNumber;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;

/// A peer as the link thread knows it.
pub(crate) struct Peer {
    pub name: Arc<str>,
    /// One machine per key; the first one sends.
    pub ids: Vec<PeerId>,
    pub hosts: Vec<String>,
    pub outbox: Option<PeerOutbox>,
    pub progress: BTreeMap<Arc<str>, Arc<Watch<Progress>>>,
    pub noted: Figures,
    pub noted_heard: BTreeMap<Arc<str>, RecordNumber>,
    /// What the outbox has as the trouble of each stream, an earlier link's included; none is as good as empty.
    pub noted_trouble: BTreeMap<Arc<str>, String>,
}

pub(crate) struct PeerOutbox {
    pub requests: Producer<OutboxRequest>,
    pub thread: JoinHandle<()>,
    pub backlog: VecDeque<StoreOp>,
}

impl Peer {
    pub fn sender(&self) -> Option<PeerId> {
        self.outbox.as_ref().and(self.ids.first().copied())
    }

    pub fn has_backlog(&self) -> bool {
        self.outbox.as_ref().is_some_and(|outbox| !outbox.backlog.is_empty())
    }

    pub fn flush(&mut self) {
        if let Some(outbox) = &mut self.outbox {
            outbox.flush();
        }
    }

    pub fn resolve(&self, peer: PeerRef, handle: &Handle) {
        if !self.hosts.is_empty() {
            // A full queue: it is asked for again.
            let _ = handle.chores.try_push(Resolve { peer, hosts: self.hosts.clone() });
        }
    }

    /// The progress of a stream, which is noted from now on; `None` if the peer is gone.
    pub fn watch(&mut self, handle: &Handle, peer: PeerRef, stream: &Arc<str>) -> Option<&Watch<Progress>> {
        if !self.progress.contains_key(stream) {
            self.progress.insert(stream.clone(), handle.shared.progress(peer, stream)?);
        }
        self.progress.get(stream).map(|watch| &**watch)
    }

    pub fn update(&mut self, handle: &Handle, peer: PeerRef, stream: &Arc<str>, change: impl FnOnce(&mut Progress)) {
        if let Some(watch) = self.watch(handle, peer, stream) {
            watch.update(change);
        }
    }

    pub fn trouble(&mut self, handle: &Handle, peer: PeerRef, stream: &Arc<str>, trouble: Trouble) {
        let name = self.name.clone();
        self.update(handle, peer, stream, |progress| {
            if progress.trouble.as_ref() != Some(&trouble) {
                tracing::warn!(peer = %name, %stream, %trouble, "the stream stands still");
            }
            progress.trouble = Some(trouble);
        });
    }

    pub fn note(&mut self, figures: Figures, streams: &[stayfast_link::StreamStatus]) {
        let Some(outbox) = &self.outbox else { return };
        if !figures.same_but_for_time(&self.noted) {
            let note = OutboxRequest::Note(Figures::key(&self.name), figures.to_string());
            if outbox.requests.try_push(note).is_ok() {
                self.noted = figures;
            }
        }
        for stream in streams {
            if self.noted_heard.get(&stream.name) != Some(&stream.heard) {
                let (key, value) = heard_note(stream);
                if outbox.requests.try_push(OutboxRequest::Note(key, value)).is_ok() {
                    self.noted_heard.insert(stream.name.clone(), stream.heard);
                }
            }
        }
        for (stream, progress) in &self.progress {
            let trouble = progress.get().trouble.map_or(String::new(), |trouble| trouble.to_string());
            if self.noted_trouble.get(stream).map_or("", String::as_str) != trouble {
                let note = OutboxRequest::Note(Figures::trouble_key(stream), trouble.clone());
                if outbox.requests.try_push(note).is_ok() {
                    self.noted_trouble.insert(stream.clone(), trouble);
                }
            }
        }
    }
}

impl PeerOutbox {
    /// A later trim of a stream makes an earlier one needless, so that a slow store has at most a read and a trim
    /// of each stream to do.
    pub fn queue(&mut self, op: StoreOp) {
        if let StoreOp::Trim { stream, .. } = &op {
            let same = |old: &StoreOp| matches!(old, StoreOp::Trim { stream: other, .. } if other == stream);
            self.backlog.retain(|old| !same(old));
        }
        self.backlog.push_back(op);
    }

    pub fn flush(&mut self) {
        while let Some(op) = self.backlog.pop_front() {
            if let Err(PushError::Full(OutboxRequest::Op(op))) = self.requests.try_push(OutboxRequest::Op(op)) {
                self.backlog.push_front(op);
                return;
            }
        }
    }
}
