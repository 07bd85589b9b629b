//! Which streams there are: those that runs of the sender were told of, and room for new ones.

use super::Receiver;
use crate::incoming::Incoming;
use crate::pattern::matches;
use alloc::sync::Arc;
use alloc::vec::Vec;
use stayfast_frame::Refusal;
use stayfast_store::CursorKey;
use stayfast_units::StoreId;

impl Receiver {
    /// Where the stream is, new or known; or why it is refused.
    pub(super) fn stream_for(&mut self, store: StoreId, name: &str) -> Result<usize, Refusal> {
        if let Some(i) = self.streams.iter().position(|s| s.is(store, name)) {
            // Its sender is back.
            self.vacant = self.vacant.filter(|vacant| *vacant != i);
            return Ok(i);
        }
        // A name with a NUL cannot be given to a program, and no outbox takes one.
        if name.contains('\0') || !self.allow.iter().any(|pattern| matches(pattern, name)) {
            return Err(Refusal::Unauthorized);
        }
        let full = self.streams.len() >= self.max_streams;
        if full && self.vacant.is_none() {
            return Err(Refusal::TooManyStreams);
        }
        let stream: Arc<str> = name.into();
        let cursor = self.known.get(&(store, stream.clone())).copied().unwrap_or_default();
        let key = CursorKey { sender: self.name.clone(), store, stream };
        let incoming = Incoming::new(key, cursor, self.limits);
        if let Some(vacant) = self.vacant.take() {
            self.streams[vacant] = incoming;
            return Ok(vacant);
        }
        self.streams.push(incoming);
        Ok(self.streams.len() - 1)
    }

    /// Would a new stream of this name be one too many?
    pub(crate) fn lacks_room(&self, store: StoreId, name: &str) -> bool {
        self.streams.len() >= self.max_streams && !self.streams.iter().any(|s| s.is(store, name))
    }

    /// Forgets a stream of which nothing is in memory and of which no run that is known was told: its sender has gone,
    /// and the limit is one for those that are there. `told` are those that runs were told of.
    pub(crate) fn make_room(&mut self, told: Vec<usize>) {
        let asked = |i: usize| self.questions.iter().any(|question| question.stream == i);
        let mut unused = (0..self.streams.len()).filter(|i| !told.contains(i) && !asked(*i));
        self.vacant = unused.find(|i| self.streams[*i].is_idle());
        if let Some(i) = self.vacant {
            let Incoming { key, cursor, .. } = &self.streams[i];
            self.known.insert((key.store, key.stream.clone()), *cursor);
        }
    }
}
