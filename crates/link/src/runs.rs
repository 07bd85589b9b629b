//! The runs of the peer whose packets come in: at most one is current, others are unproven, dying or clones.

use crate::acks::Acks;
use crate::config::MAX_RUNS;
use crate::receiver::RunView;
use alloc::vec::Vec;
use core::net::SocketAddr;
use stayfast_frame::{Opened, SessionId};
use stayfast_units::{RunId, Time};

#[derive(Debug)]
pub(crate) struct RemoteRun {
    pub run: RunId,
    /// The session its newest packet came in: answers go there.
    pub session: SessionId,
    /// Where its newest packet came from.
    pub address: SocketAddr,
    pub acks: Acks,
    pub view: RunView,
    /// A packet that no replay can forge has come from this run, and from this address.
    pub proven: bool,
    /// Bytes that came less bytes that were sent, while unproven (RFC 9000, 8.1).
    pub budget: u64,
    /// The unproven end was asked to prove itself.
    pub challenged: bool,
    /// An INIT came that could not be taken, or from the run that is current: its message 1 wants an answer.
    pub unanswered: bool,
    heard: Time,
}

#[derive(Debug, Default)]
pub(crate) struct Runs {
    list: Vec<RemoteRun>,
    current: Option<RunId>,
}

impl Runs {
    /// Notes that a packet of a run came; a run not seen before takes the place of the one silent for longest.
    pub(crate) fn heard(&mut self, now: Time, opened: &Opened, from: SocketAddr, len: usize) -> &mut RemoteRun {
        let i = match self.list.iter().position(|run| run.run == opened.run) {
            Some(i) => i,
            None => self.admit(now, opened, from),
        };
        let run = &mut self.list[i];
        if run.address != from && !opened.bound {
            // It may be a replay from an address that was made up, so what was proven elsewhere counts for nothing.
            (run.proven, run.budget) = (false, 0);
        }
        run.session = opened.session;
        run.address = from;
        run.heard = now;
        run.budget = run.budget.saturating_add(len as u64);
        run.proven |= opened.bound;
        run
    }

    fn admit(&mut self, now: Time, opened: &Opened, from: SocketAddr) -> usize {
        if self.list.len() >= MAX_RUNS {
            let current = self.current;
            let others = self.list.iter().enumerate().filter(|(_, run)| Some(run.run) != current);
            if let Some((oldest, _)) = others.min_by_key(|(_, run)| run.heard) {
                self.list.swap_remove(oldest);
            }
        }
        self.list.push(RemoteRun {
            run: opened.run,
            session: opened.session,
            address: from,
            acks: Acks::new(),
            view: RunView::default(),
            proven: false,
            budget: 0,
            challenged: false,
            unanswered: false,
            heard: now,
        });
        self.list.len() - 1
    }

    /// A bound packet has proven `run`. Returns the run it displaces, if that is another.
    pub(crate) fn become_current(&mut self, run: RunId) -> Option<RunId> {
        self.current.replace(run).filter(|old| *old != run)
    }

    pub(crate) fn current(&self) -> Option<RunId> {
        self.current
    }

    pub(crate) fn get(&mut self, run: RunId) -> Option<&mut RemoteRun> {
        self.list.iter_mut().find(|known| known.run == run)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &RemoteRun> {
        self.list.iter()
    }

    pub(crate) fn views(&mut self) -> impl Iterator<Item = (RunId, &mut RunView)> {
        self.list.iter_mut().map(|run| (run.run, &mut run.view))
    }

    /// What those runs were told that listen: the current one, and whoever was heard since. The others are most likely
    /// dead; one that lives asks.
    pub(crate) fn listeners(&mut self) -> impl Iterator<Item = (RunId, &mut RunView)> {
        let current = self.current;
        let since = self.list.iter().find(|run| Some(run.run) == current).map_or(Time::ZERO, |run| run.heard);
        let listens = move |run: &&mut RemoteRun| Some(run.run) == current || run.heard >= since;
        self.list.iter_mut().filter(listens).map(|run| (run.run, &mut run.view))
    }
}
