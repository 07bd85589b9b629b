//! The machine of one peer: sessions, path, ledger, controller, pacer, and the two halves of the link.

use crate::carried::Carried;
use crate::config::Config;
use crate::ecn::Validation;
use crate::event::{Deadline, Event, Status};
use crate::fate::settle;
use crate::path::Path;
use crate::random::Random;
use crate::receiver::{Body, Receiver, Taken};
use crate::runs::{RemoteRun, Runs};
use crate::sender::Sender;
use crate::size;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;
use stayfast_congestion::{Acked, Controller, Cubic, Signal};
use stayfast_frame::{Ack, Frame, Opened, Rejected, Seal, decode};
use stayfast_pacer::Pacer;
use stayfast_pmtud::Search;
use stayfast_recovery::{EpisodeChange, Ledger, Outcome, Report, Sent, Timeout};
use stayfast_store::{Hole, Level, Origin, StoreDone, StoreError, StoreOp};
use stayfast_units::{RecordNumber, RunId, Time};

/// INITs of a restarted receiver, at most.
const WAKES: u32 = 3;
/// Pause between them before jitter; each next one is twice as long.
const WAKE_PAUSE: Duration = Duration::from_millis(100);
/// Probes in a row after which the peer's name is looked up again, and INITs go round its addresses.
const LOST_TOUCH: u32 = 3;
/// Probes in a row after which there is silence, unless records are outstanding.
const GIVE_UP: u32 = 6;

/// Deadlines of the ledger that can pass at a time: loss, probe, gone.
const LEDGER_DEADLINES: u32 = 3;

pub(crate) struct Peer<S> {
    pub(crate) config: Arc<Config>,
    pub(crate) seal: S,
    pub(crate) sender: Option<Sender>,
    pub(crate) receiver: Receiver,
    pub(crate) runs: Runs,
    pub(crate) path: Path,
    pub(crate) ledger: Ledger<Carried>,
    pub(crate) congestion: Cubic,
    pub(crate) pacer: Pacer,
    pub(crate) search: Search,
    pub(crate) ecn: Validation,
    pub(crate) events: VecDeque<Event>,
    pub(crate) probes: Probes,
    pub(crate) wake: Option<(u32, Time)>,
    /// The last time there was something to send, the window or the pacer was what held it back.
    pub(crate) app_limited: bool,
    /// The window was just cut, and nothing was sent since.
    pub(crate) recovering: bool,
    /// The last packet of data was full, and there was more.
    pub(crate) backlogged: bool,
    pub(crate) packets_sent: u64,
    /// The receiver indices are another set than the owner knows.
    pub(crate) indices_changed: bool,
    /// When something new last called for a probe before its time.
    nudged: Time,
    random: Random,
    last_heard: Option<Time>,
    packets_received: u64,
    /// What the node's list of deadlines has of it.
    pub(crate) scheduled: Option<(Time, Deadline)>,
}

/// Probes to send, whatever the window says (RFC 9002, 6.2.4).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probes {
    pub bound: u32,
    pub init: u32,
}

impl<S: Seal> Peer<S> {
    pub(crate) fn new(
        config: Arc<Config>,
        now: Time,
        seal: S,
        sender: Option<Sender>,
        receiver: Receiver,
        path: Path,
        random: Random,
    ) -> Peer<S> {
        let ledger = stayfast_recovery::Config {
            capacity: config.ledger,
            max_ack_delay: config.ack_delay,
            ..stayfast_recovery::Config::default()
        };
        let mut peer = Peer {
            seal,
            sender,
            receiver,
            runs: Runs::default(),
            search: size::search(&config, now, path.current()),
            congestion: size::controller(&config, now, path.current()),
            path,
            ecn: Validation::new(),
            ledger: Ledger::new(ledger),
            pacer: Pacer::new(),
            events: VecDeque::new(),
            probes: Probes::default(),
            wake: None,
            app_limited: true,
            recovering: false,
            backlogged: false,
            packets_sent: 0,
            indices_changed: false,
            nudged: Time::ZERO,
            random,
            last_heard: None,
            packets_received: 0,
            scheduled: None,
            config,
        };
        peer.resized();
        peer
    }

    /// Says at most three times that this run is here, so that the peer need not wait out a back-off.
    pub(crate) fn wake(&mut self, now: Time) {
        self.wake = Some((WAKES, now));
    }

    pub(crate) fn wake_sent(&mut self, now: Time) {
        let jitter = self.random.below(WAKE_PAUSE.as_nanos() as u64 / 4);
        self.wake = self.wake.and_then(|(left, _)| {
            let pause = WAKE_PAUSE * (1 << (WAKES - left)) + Duration::from_nanos(jitter);
            (left > 1).then_some((left - 1, now + pause))
        });
    }

    // --- packets that come in ---

    /// Takes a datagram.
    pub(crate) fn handle_datagram(
        &mut self,
        now: Time,
        from: SocketAddr,
        ecn: u8,
        datagram: &mut [u8],
    ) -> Result<(), Rejected> {
        let len = datagram.len();
        let opened = self.seal.open(now, datagram)?;
        self.indices_changed |= opened.indices_changed;
        self.last_heard = Some(now);
        self.packets_received += 1;
        self.runs.heard(now, &opened, from, len);
        if opened.bound {
            self.bound_packet(now, &opened, from);
        }
        let payload = datagram.get(opened.payload.clone()).ok_or(Rejected::Malformed)?;
        // If one frame is bad, none of them counts.
        let (mut eliciting, mut immediate, mut records) = (false, false, false);
        for frame in decode(payload) {
            let frame = frame?;
            if !opened.bound && !frame.allowed_unbound() {
                return Err(Rejected::Malformed);
            }
            eliciting |= frame.is_ack_eliciting();
            immediate |= frame == Frame::ImmediateAck;
            records |= matches!(frame, Frame::Records(_) | Frame::Part(_));
        }
        let mut taken = Taken::Yes;
        for frame in decode(payload) {
            if self.handle_frame(now, &opened, frame?)? == Taken::No {
                taken = Taken::No;
            }
        }
        // Bytes that could not be kept must not be acknowledged: an ACK is a promise.
        let current = self.runs.current() == Some(opened.run);
        if let Some(run) = self.runs.get(opened.run) {
            if records || immediate {
                run.view.more = !immediate;
            }
            // A run that we talk to and that asks anew may have no session left that we know.
            run.unanswered |= !opened.bound && (current || taken == Taken::No);
            if taken == Taken::Yes {
                run.acks.received(now, opened.number, ecn);
                if eliciting {
                    run.acks.elicited(now, self.config.ack_delay, immediate, records);
                }
            }
        }
        self.arm(now);
        Ok(())
    }

    fn bound_packet(&mut self, now: Time, opened: &Opened, from: SocketAddr) {
        self.wake = None;
        self.path.answered();
        if opened.newly_current && self.runs.current() != Some(opened.run) {
            self.path.run_changed();
            if self.runs.become_current(opened.run).is_some() {
                self.run_changed(now);
            }
            if let Some(run) = self.runs.get(opened.run) {
                run.view.renew();
            }
        }
        let before = self.path.current();
        if self.runs.current() == Some(opened.run) && self.path.heard(from, opened.number) {
            self.path_moved(now, before, from);
            self.events.push_back(Event::Address(from));
        }
    }

    /// Another run of the peer answers: the old one's memory is gone, and with it what it had acknowledged.
    fn run_changed(&mut self, now: Time) {
        // News for the old run is of no use to anybody.
        let episode = self.ledger.abandon(&mut |_| {});
        self.search.on_probe_unsent();
        self.ecn.run_changed();
        if episode == EpisodeChange::Real {
            self.congestion.on_real();
        }
        if let Some(sender) = &mut self.sender {
            sender.unsend_all();
        }
        self.probes = Probes::default();
        self.events.push_back(Event::RunChanged);
        self.arm(now);
    }

    fn handle_frame(&mut self, now: Time, opened: &Opened, frame: Frame<'_>) -> Result<Taken, Rejected> {
        match frame {
            Frame::Ack(ack) => self.handle_ack(now, opened, &ack)?,
            Frame::Records(_)
            | Frame::Part(_)
            | Frame::Open { .. }
            | Frame::Origin { .. }
            | Frame::Gap { .. }
            | Frame::Expired { .. }
            | Frame::Query { .. }
            | Frame::Blocked { .. } => return Ok(self.receive(now, opened.run, frame)),
            Frame::Heard { .. }
            | Frame::Stored(_)
            | Frame::Answer { .. }
            | Frame::Credit { .. }
            | Frame::Refused { .. }
            | Frame::Fenced { .. } => self.told(now, opened, frame),
            _ => {}
        }
        Ok(Taken::Yes)
    }

    /// Frames of the peer's sender.
    fn receive(&mut self, now: Time, run: RunId, frame: Frame<'_>) -> Taken {
        if let Frame::Open { store, name, .. } = frame
            && self.receiver.lacks_room(store, name)
        {
            let told = self.runs.views().flat_map(|(_, view)| view.incoming()).collect();
            self.receiver.make_room(told);
        }
        let receiver = &mut self.receiver;
        let Some(RemoteRun { view, .. }) = self.runs.get(run) else { return Taken::No };
        match frame {
            Frame::Records(records) => {
                receiver.on_bodies(now, view, records.alias, records.iter().map(|part| (part.number, Body::of(&part))))
            }
            Frame::Part(part) => receiver.on_body(now, view, part.alias, part.number, Body::of(&part)),
            Frame::Gap { alias, first, count } => receiver.on_holes(now, view, alias, first, (count, Hole::Gap)),
            Frame::Expired { alias, first, count } => {
                receiver.on_holes(now, view, alias, first, (count, Hole::Expired))
            }
            Frame::Open { alias, store, name } => receiver.on_open(view, alias, store, name),
            Frame::Origin { alias, first, lineage, parent } => {
                receiver.on_origin(view, alias, Origin { first, lineage, parent })
            }
            Frame::Query { nonce, alias, .. } => receiver.on_query(view, run, nonce, alias),
            Frame::Blocked { alias, .. } => {
                receiver.on_blocked(view, alias);
                Taken::Yes
            }
            _ => Taken::Yes,
        }
    }

    /// Frames of the peer's receiver.
    fn told(&mut self, now: Time, opened: &Opened, frame: Frame<'_>) {
        // A run that is not current speaks of a memory that is gone; only what it stored still counts.
        let current = self.runs.current() == Some(opened.run);
        let Some(sender) = &mut self.sender else { return };
        let events = &mut self.events;
        match frame {
            Frame::Stored(stored) => {
                let level = Level::try_from(stored.level).unwrap_or(Level::Memory);
                sender.on_stored(&stored, level, events);
            }
            Frame::Answer { nonce, alias, next, .. } => sender.on_answer(nonce, alias, next, events),
            Frame::Fenced { alias, number, theirs, yours } => sender.on_fenced(alias, number, theirs, yours, events),
            Frame::Heard { alias, next } if current => sender.on_heard(alias, next, events),
            Frame::Credit { link, alias, from, bytes } if current => sender.on_credit(link, alias, from, bytes),
            Frame::Refused { alias, number, reason } if current => {
                sender.on_refused(now, alias, number, reason, events);
            }
            _ => {}
        }
    }

    // --- the fate of packets that went out ---

    fn handle_ack(&mut self, now: Time, opened: &Opened, ack: &Ack<'_>) -> Result<(), Rejected> {
        if self.runs.current() != Some(opened.run) {
            return Ok(());
        }
        let Peer { ledger, sender, receiver, runs, search, ecn, .. } = self;
        let ranges = ack.ranges().map(|range| (range.first, range.last));
        let mut sink = |outcome, sent: &Sent<Carried>| {
            ecn.settled(now, outcome, sent);
            settle(now, outcome, sent, search, sender, receiver, runs);
        };
        let report = ledger.acknowledge(now, ack.largest, ack.delay, ranges, &mut sink);
        let report = report.map_err(|_| Rejected::Malformed)?;
        if report.newest_sent.is_some() {
            self.probes = Probes::default();
        }
        let marked = report.newest_sent.filter(|_| self.ecn.on_ack(now, ack.ecn));
        self.control(now, &report, marked);
        self.resized();
        Ok(())
    }

    /// Tells the controller what an acknowledgement or a timeout has shown. `marked`: CE marks came back, and the newest
    /// packet that they may concern was sent then.
    fn control(&mut self, now: Time, report: &Report, marked: Option<Time>) {
        for change in report.episode {
            match change {
                EpisodeChange::None => {}
                EpisodeChange::Began => self.congestion.on_episode_began(),
                EpisodeChange::Spurious => self.congestion.on_spurious(now),
                EpisodeChange::Real => self.congestion.on_real(),
            }
        }
        if let Some(sent) = report.largest_lost_sent {
            let window = self.congestion.window();
            self.congestion.on_congestion(now, sent, Signal::Loss);
            self.recovering |= self.congestion.window() < window;
        }
        if report.persistent {
            self.congestion.on_persistent(now);
        }
        if let Some(sent) = marked {
            if self.ledger.congestion_signalled(now, sent) == EpisodeChange::Real {
                self.congestion.on_real();
            }
            self.congestion.on_congestion(now, sent, Signal::Ecn);
        }
        let Some(newest_sent) = report.newest_sent else { return };
        let rtt = self.ledger.rtt();
        self.congestion.on_acked(&Acked {
            now,
            bytes: report.acked_bytes,
            newest_sent,
            latest_rtt: rtt.latest(),
            smoothed_rtt: rtt.smoothed(),
            min_rtt: rtt.min(),
            in_flight: report.in_flight_before,
            limited: self.app_limited,
            rate: report.rate.map(|sample| sample.rate()),
        });
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        // With the first of its deadlines met, the ledger may find that another has passed.
        for _ in 0..LEDGER_DEADLINES {
            let Peer { ledger, sender, receiver, runs, search, ecn, .. } = self;
            if ledger.next_timeout().is_none_or(|(at, _)| at > now) {
                break;
            }
            let mut sink = |outcome, sent: &Sent<Carried>| {
                ecn.settled(now, outcome, sent);
                settle(now, outcome, sent, search, sender, receiver, runs);
            };
            let (timeout, report) = ledger.timeout(now, &mut sink);
            self.control(now, &report, None);
            if let Timeout::Probe { in_a_row } = timeout {
                self.search.on_probe_timeout(now, in_a_row);
                self.ecn.on_probe_timeout(now);
                self.probe(in_a_row);
            }
            self.resized();
        }
        if let Some(sender) = &mut self.sender {
            sender.handle_retry(now);
        }
        self.receiver.handle_retry(now);
        self.arm(now);
    }

    /// The outbox's tail moved.
    pub(crate) fn appended(&mut self, now: Time, stream: &Arc<str>, next: RecordNumber) {
        let will_be_read = self.sender.as_mut().is_some_and(|sender| sender.appended(stream, next));
        if !will_be_read && !self.window_is_open() {
            self.nudge(now);
        }
    }

    pub(crate) fn set_addresses(&mut self, now: Time, addresses: Vec<SocketAddr>) {
        if self.path.configure(addresses) {
            self.nudge(now);
        }
    }

    pub(crate) fn grant(&mut self, bytes: usize) {
        self.receiver.grant(bytes, self.runs.views().map(|(_, view)| view));
    }

    /// Something new: records to send, or another address. After a probe timeout nobody waits for the next one.
    pub(crate) fn nudge(&mut self, now: Time) {
        let may = self.nudged == Time::ZERO || now >= self.nudged + self.ledger.pto();
        if self.ledger.probes_in_a_row() > 0 && may && !self.is_idle() {
            self.nudged = now;
            let bound = self.seal.current().is_some();
            let init = !bound || self.ledger.probes_in_a_row() > 1;
            self.probes = Probes { bound: bound.into(), init: init.into() };
        }
    }

    /// No record waits to be sent or stored.
    fn is_idle(&self) -> bool {
        self.sender.as_ref().is_none_or(|sender| !sender.has_more() && !sender.is_outstanding())
    }

    /// The first probe goes the way of all packets; from the second on an INIT goes too, in case the peer was
    /// restarted; from the third on other addresses are tried.
    fn probe(&mut self, in_a_row: u32) {
        if in_a_row > GIVE_UP && self.is_idle() {
            // What the packets carried was news, or is stored: the peer asks if it is there.
            self.search.on_probe_unsent();
            self.ecn.forgotten();
            if self.ledger.abandon(&mut |_| {}) == EpisodeChange::Real {
                self.congestion.on_real();
            }
            return;
        }
        let bound = self.seal.current().is_some();
        self.probes = Probes { bound: u32::from(bound), init: u32::from(!bound || in_a_row >= 2) };
        if in_a_row >= LOST_TOUCH {
            self.path.next_turn();
            self.events.push_back(Event::Resolve);
        } else if !bound {
            self.path.next_turn();
        }
        let Some(sender) = &mut self.sender else { return };
        // New data first; without any, or when that was not answered either, what the oldest packet carried of which records
        // are missing: a receiver that has nothing yet can only begin at the beginning.
        let is_missing = |sent: &&Sent<Carried>| sent.carried.iter().any(|item| sender.is_missing(item));
        if (in_a_row >= 2 || !bound || !sender.has_more())
            && let Some(oldest) = self.ledger.outstanding().find(is_missing)
        {
            sender.resend_first(oldest.number.0, oldest.carried.iter());
        }
    }

    /// The packets `first..=last` never left this machine.
    pub(crate) fn unsent(&mut self, now: Time, first: u64, last: u64) {
        let Peer { ledger, sender, receiver, runs, search, ecn, .. } = self;
        let numbers = first..=last;
        for sent in ledger.outstanding().filter(|sent| numbers.contains(&sent.number.0)) {
            if sent.size_probe {
                search.on_probe_unsent();
            }
            ecn.unsent(now, sent);
            settle(now, Outcome::Lost, sent, search, sender, receiver, runs);
        }
        for number in numbers {
            ledger.unsent(stayfast_units::PacketNumber(number));
        }
    }

    // --- deadlines ---

    pub(crate) fn arm(&mut self, now: Time) {
        let pto = self.ledger.pto();
        let jitter = self.random.next();
        if let Some(sender) = &mut self.sender {
            sender.arm(now, pto, jitter);
        }
    }

    pub(crate) fn next_timeout(&self, now: Time) -> Option<(Time, Deadline)> {
        let ledger = self.ledger.next_timeout().map(|(at, deadline)| {
            let name = match deadline {
                stayfast_recovery::Deadline::Loss => Deadline::Loss,
                stayfast_recovery::Deadline::Probe => Deadline::Probe,
                stayfast_recovery::Deadline::Gone => Deadline::Gone,
            };
            (at, name)
        });
        let mut next = ledger;
        let mut sooner = |at: Option<Time>, name| {
            if let Some(at) = at
                && next.is_none_or(|(next, _)| at < next)
            {
                next = Some((at, name));
            }
        };
        for run in self.runs.iter().filter(|run| self.may_answer(run)) {
            sooner(run.acks.due(), Deadline::Ack);
            let news = self.receiver.news_at(&run.view);
            sooner(news, Deadline::News);
        }
        if let Some(sender) = &self.sender {
            // A question that is due waits for window and pacer like everything else.
            sooner(sender.ask_at().filter(|at| *at > now), Deadline::Ask);
            sooner(sender.retry_at(), Deadline::Retry);
        }
        sooner(self.receiver.retry_at(), Deadline::Retry);
        // Without an address nothing can be done until there is one.
        sooner(self.wake.map(|(_, at)| at).filter(|_| self.path.init().is_some()), Deadline::Wake);
        if self.wants_to_send(now) && self.window_is_open() && self.path.current().is_some() {
            sooner(Some(self.pacer.next_send(now, self.pacing_rate())), Deadline::Pace);
        }
        next
    }

    // --- the store ---

    pub(crate) fn poll_store(&mut self) -> Option<StoreOp> {
        let sender = self.sender.as_mut();
        sender.and_then(Sender::poll_store).or_else(|| self.receiver.poll_store())
    }

    pub(crate) fn handle_store(&mut self, now: Time, done: StoreDone) {
        match done {
            StoreDone::Read { stream, from, result } => {
                if let Some(sender) = &mut self.sender {
                    let poisoned = matches!(result, Err(StoreError::Poisoned));
                    sender.read_done(now, &stream, from, result, &mut self.events);
                    if poisoned {
                        self.poisoned();
                    } else if !self.window_is_open() {
                        self.nudge(now);
                    }
                }
            }
            StoreDone::Poisoned => self.poisoned(),
            done => receive_done(now, &mut self.receiver, done, &mut self.runs),
        }
        self.arm(now);
    }

    /// A store of this peer accepts nothing more. Which one is not said, so neither is asked again.
    fn poisoned(&mut self) {
        let sender = self.sender.as_mut().is_some_and(Sender::poison);
        let receiver = self.receiver.poison();
        if sender || receiver {
            self.events.push_back(Event::Poisoned);
        }
    }

    pub(crate) fn status(&self) -> Status {
        let stats = self.ledger.stats();
        let sender = self.sender.as_ref();
        Status {
            last_heard: self.last_heard,
            waiting_since: self.ledger.outstanding().next().map(|sent| sent.time),
            rtt: self.ledger.rtt().smoothed(),
            window: self.congestion.window(),
            in_flight: self.ledger.in_flight(),
            packets_sent: self.packets_sent,
            packets_received: self.packets_received,
            bytes_sent: sender.map_or(0, |sender| sender.bytes_sent),
            bytes_resent: sender.map_or(0, |sender| sender.bytes_resent),
            lost: stats.lost,
            late: stats.late,
            episodes: stats.episodes,
            undos: stats.spurious,
            ecn: self.ecn.is(),
            marks: self.ecn.marks(),
            address: self.path.current(),
            datagram: self.search.limit(),
            streams: sender.into_iter().flat_map(Sender::status).collect(),
        }
    }
}

/// What a store operation of the receiver came to.
fn receive_done(now: Time, receiver: &mut Receiver, done: StoreDone, runs: &mut Runs) {
    let only = |(_, view)| view;
    match done {
        StoreDone::Delivered { key, level, to } => receiver.delivered(&key, level, to, runs.listeners().map(only)),
        StoreDone::Conflict { key, at } => receiver.conflict(&key, at, runs.listeners().map(only)),
        StoreDone::Returned(delivery) => receiver.returned(delivery),
        StoreDone::Rejected { key, number } => receiver.rejected(&key, number, runs.views().map(only)),
        StoreDone::Cursor { key, nonce, position } => receiver.cursor_read(&key, nonce, position, runs.views()),
        StoreDone::Failed { key } => receiver.failed(now, &key),
        StoreDone::Poisoned | StoreDone::Read { .. } => {}
    }
}
