//! From what is waiting to packets: who is written to, by which way, and what goes in.

use crate::carried::{Carried, Item};
use crate::ecn::NOT_ECT;
use crate::peer::Peer;
use crate::runs::RemoteRun;
use core::net::SocketAddr;
use stayfast_congestion::Controller;
use stayfast_frame::{Frame, Kind, Seal, TAG_LEN, Via, Writer};
use stayfast_units::{Rate, RunId, Time};

/// Datagrams for one destination, back to back: all of `segment` bytes but the last, which may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Whose packets.
    pub peer: crate::PeerId,
    /// Where to.
    pub to: SocketAddr,
    /// Bytes in the buffer.
    pub len: usize,
    /// Bytes of each datagram but the last.
    pub segment: usize,
    /// Number of the first packet.
    pub first: u64,
    /// Number of the last packet.
    pub last: u64,
    /// The two ECN bits for the IP header of each.
    pub ecn: u8,
}

/// What datagrams of one transmit have in common: where they go, and their ECN bits.
type Way = (SocketAddr, u8);

/// What the next packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Acknowledgements and news for one run; nothing that fills a window.
    Answer(RunId),
    /// Records, questions, and whatever else is due.
    Data,
    /// Like data, whatever the window says.
    Probe,
    /// The same by INIT, since the peer may have been restarted.
    ProbeInit,
    /// A restarted receiver says that it is back.
    Wake,
    /// Whether the path takes a larger packet.
    SizeProbe,
}

/// Payload of an INIT, bytes, at least: who is not proven gets no more than came from there, and shall be answered.
const SHORTEST_INIT: usize = 128;
/// Purposes that are tried before there is nothing to send.
const TRIES: usize = 4;

struct Packet {
    len: usize,
    number: u64,
    full: bool,
}

impl<S: Seal> Peer<S> {
    /// Writes datagrams for one destination into `buf`, at most `max_segments`. `None`: nothing to send now.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Time,
        peer: crate::PeerId,
        buf: &mut [u8],
        max_segments: usize,
    ) -> Option<Transmit> {
        if let Some(probe) = self.size_probe(now, peer, buf) {
            return Some(probe);
        }
        let size = usize::from(self.search.limit()).min(buf.len()).max(1);
        let mut batch: Option<Transmit> = None;
        for room in buf.chunks_exact_mut(size).take(max_segments) {
            let way = batch.as_ref().map(|batch| (batch.to, batch.ecn));
            let Some((packet, (to, ecn))) = self.next_packet(now, way, room) else { break };
            let batch = batch.get_or_insert(Transmit {
                peer,
                to,
                len: 0,
                segment: packet.len,
                first: packet.number,
                last: packet.number,
                ecn,
            });
            batch.len += packet.len;
            batch.last = packet.number;
            if !packet.full {
                break;
            }
        }
        batch
    }

    /// Builds the next packet, unless it goes another way than those before it.
    fn next_packet(&mut self, now: Time, before: Option<Way>, room: &mut [u8]) -> Option<(Packet, Way)> {
        // What was due may turn out to be nothing any more, while something else is due all the same.
        for _ in 0..TRIES {
            let (purpose, via, to) = self.next_purpose(now)?;
            let way = (to, self.mark(now, purpose, via));
            if before.is_some_and(|before| before != way) {
                return None;
            }
            if let Some(packet) = self.build(now, purpose, via, way.1, room) {
                return Some((packet, way));
            }
        }
        None
    }

    /// Data is marked. What must get through where a mark does not is not: an INIT, a probe, an acknowledgement.
    fn mark(&mut self, now: Time, purpose: Purpose, via: Via) -> u8 {
        match (purpose, via) {
            (Purpose::Data, Via::Session(_)) => self.ecn.mark(now),
            _ => NOT_ECT,
        }
    }

    pub(crate) fn next_purpose(&mut self, now: Time) -> Option<(Purpose, Via, SocketAddr)> {
        let current = self.runs.current();
        let other = self.runs.iter().find(|run| Some(run.run) != current && self.answer_due(now, run));
        if let Some(run) = other {
            return Some((Purpose::Answer(run.run), Via::Session(run.session), run.address));
        }
        let bound = self.seal.current().map(Via::Session);
        if self.probes.bound > 0
            && let (Some(via), Some(to)) = (bound, self.path.current())
        {
            return Some((Purpose::Probe, via, to));
        }
        if self.probes.init > 0
            && let Some(to) = self.path.init()
        {
            return Some((Purpose::ProbeInit, Via::Init, to));
        }
        if self.wake.is_some_and(|(_, at)| at <= now)
            && let Some(to) = self.path.init()
        {
            return Some((Purpose::Wake, Via::Init, to));
        }
        if self.may_send_data(now)
            && let Some(to) = self.path.current()
        {
            return Some((Purpose::Data, bound.unwrap_or(Via::Init), to));
        }
        let run = self.runs.iter().find(|run| Some(run.run) == current && self.answer_due(now, run))?;
        let via = if run.unanswered { Via::Session(run.session) } else { bound? };
        Some((Purpose::Answer(run.run), via, self.path.current()?))
    }

    /// Can `run` be answered at all, and does an unproven one leave us bytes to do so?
    pub(crate) fn may_answer(&self, run: &RemoteRun) -> bool {
        if Some(run.run) == self.runs.current() {
            return true;
        }
        let Some(kind) = self.seal.kind(Via::Session(run.session)) else { return false };
        run.proven || self.path.is_validated(run.address) || run.budget >= (kind.overhead() + 64) as u64
    }

    fn answer_due(&self, now: Time, run: &RemoteRun) -> bool {
        let news = self.receiver.news_at(&run.view);
        let due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        (run.unanswered || due(run.acks.due()) || due(news)) && self.may_answer(run)
    }

    /// There is something that fills a window: records, or a question that is due.
    pub(crate) fn wants_to_send(&self, now: Time) -> bool {
        let Some(sender) = &self.sender else { return false };
        sender.has_more() || sender.ask_at().is_some_and(|at| at <= now)
    }

    pub(crate) fn window_is_open(&self) -> bool {
        let datagram = u64::from(self.search.limit());
        let fits = self.ledger.in_flight() + datagram <= self.congestion.window();
        !self.ledger.is_full() && (fits || self.resends_at_once())
    }

    /// What was lost is sent once whatever the window says (RFC 9002, 7.3.2): with a small window half a round trip of
    /// acknowledgements would be waited for, and all that is behind it in its stream waits, too.
    fn resends_at_once(&self) -> bool {
        self.recovering && self.sender.as_ref().is_some_and(|sender| sender.has_resend())
    }

    pub(crate) fn pacing_rate(&self) -> Rate {
        self.congestion.pacing_rate(self.ledger.rtt().smoothed())
    }

    /// Window and pacer let a full packet go, and there is one. Notes which of them was missing: a window that is
    /// not used must not grow (RFC 9002, 7.8).
    fn may_send_data(&mut self, now: Time) -> bool {
        if !self.wants_to_send(now) {
            self.app_limited = true;
            return false;
        }
        if !self.window_is_open() {
            self.app_limited = false;
            return false;
        }
        let datagram = self.search.limit();
        self.pacer.budget(now, self.pacing_rate(), datagram) >= u64::from(datagram)
    }

    fn build(&mut self, now: Time, purpose: Purpose, via: Via, ecn: u8, room: &mut [u8]) -> Option<Packet> {
        let kind = self.seal.kind(via)?;
        let limit = self.limit(purpose, kind, room.len());
        let payload = room.get_mut(kind.header_len()..limit.checked_sub(TAG_LEN)?)?;
        let mut w = Writer::new(payload);
        let mut carried = Carried::new(kind == Kind::Init);
        carried.marked = ecn != NOT_ECT;
        let to_run = match purpose {
            Purpose::Answer(run) => Some(run),
            _ => self.runs.current().filter(|_| kind != Kind::Init),
        };
        let mut eliciting = to_run.is_some_and(|run| self.fill_answer(now, run, kind, &mut w, &mut carried));
        if !matches!(purpose, Purpose::Answer(_)) {
            eliciting |= self.fill_data(now, purpose, &mut w, &mut carried);
        }
        if w.written() == 0 {
            self.give_up(purpose);
            return None;
        }
        let more = self.sender.as_ref().is_some_and(|sender| sender.has_more());
        if eliciting && !matches!(purpose, Purpose::Answer(_)) {
            // The peer need not wait for company that will not come.
            if !more || purpose != Purpose::Data {
                let _ = w.put(&Frame::ImmediateAck);
            } else {
                w.pad_to(usize::MAX);
            }
        }
        if kind == Kind::Init {
            w.pad_to(SHORTEST_INIT);
        }
        let len = kind.header_len() + w.written() + TAG_LEN;
        let number = self.seal.seal(via, &mut room[..len]).ok()?;
        // A new message 1 has a new index, which its answer comes to.
        self.indices_changed |= via == Via::Init;
        self.packets_sent += 1;
        self.account(now, purpose, number, len, eliciting.then_some(carried));
        let full = more && purpose == Purpose::Data && len == room.len();
        if purpose == Purpose::Data {
            self.backlogged = full;
        }
        Some(Packet { len, number: number.0, full })
    }

    /// How long the packet may be: an unproven address gets no more than came from it, and one that is not the path no
    /// more than every path takes.
    fn limit(&mut self, purpose: Purpose, kind: Kind, room: usize) -> usize {
        let strange = kind == Kind::Init || matches!(purpose, Purpose::Answer(run) if self.runs.current() != Some(run));
        let room = if strange { room.min(self.config.datagram.into()) } else { room };
        let Purpose::Answer(run) = purpose else { return room };
        let current = self.runs.current() == Some(run);
        let Some(run) = self.runs.get(run) else { return room };
        if current || run.proven || self.path.is_validated(run.address) {
            return room;
        }
        room.min(usize::try_from(run.budget).unwrap_or(room))
    }

    /// ACK, HEARD and news for a run. True if the packet must be acknowledged.
    fn fill_answer(&mut self, now: Time, to: RunId, kind: Kind, w: &mut Writer<'_>, carried: &mut Carried) -> bool {
        let quarter_rtt = self.ledger.rtt().smoothed() / 4;
        let Some(run) = self.runs.get(to) else { return false };
        if run.acks.is_waiting()
            && let Ok(largest) = run.acks.write(now, w)
        {
            carried.push(Item::Ack { run: to, largest: largest.0 });
            self.receiver.fill_heard(&mut run.view, w);
        }
        let before = w.written();
        self.receiver.fill(now, to, &mut run.view, quarter_rtt, w, carried);
        // Whoever has not proven yet that it is no replay is asked for a packet that does; and an INIT that could
        // not be taken is answered all the same, for its sender must learn of this run.
        let asked = run.unanswered || (kind == Kind::Reply && !run.challenged);
        if asked && w.written() == before && w.put(&Frame::Ping).is_ok() {
            run.challenged = true;
        }
        run.unanswered = false;
        w.written() > before
    }

    /// Records and questions; in a probe without any, a PING. True if the packet must be acknowledged.
    fn fill_data(&mut self, now: Time, purpose: Purpose, w: &mut Writer<'_>, carried: &mut Carried) -> bool {
        let before = w.written();
        if let Some(sender) = &mut self.sender {
            sender.fill_questions(now, w, carried);
            // Records go only where their fate will be known: those of a packet that no ledger holds would be waited for
            // for ever.
            if purpose != Purpose::Wake && !self.ledger.is_full() {
                sender.fill(w, carried);
            }
        }
        if purpose != Purpose::Data && w.written() == before {
            let _ = w.put(&Frame::Ping);
        }
        w.written() > before
    }

    /// Nothing could be written for this purpose: forget that it was due, or it would be asked for ever.
    fn give_up(&mut self, purpose: Purpose) {
        match purpose {
            Purpose::Probe => self.probes.bound = 0,
            Purpose::ProbeInit => self.probes.init = 0,
            Purpose::Wake => self.wake = None,
            Purpose::Answer(_) | Purpose::Data | Purpose::SizeProbe => {}
        }
    }

    pub(crate) fn account(
        &mut self,
        now: Time,
        purpose: Purpose,
        number: stayfast_units::PacketNumber,
        len: usize,
        carried: Option<Carried>,
    ) {
        match purpose {
            Purpose::Probe => self.probes.bound -= 1,
            Purpose::ProbeInit => self.probes.init -= 1,
            Purpose::Wake => self.wake_sent(now),
            Purpose::Answer(run) => {
                if let Some(run) = self.runs.get(run) {
                    run.budget = run.budget.saturating_sub(len as u64);
                }
            }
            Purpose::Data => self.recovering = false,
            Purpose::SizeProbe => {}
        }
        // What is promised to nobody's memory is not waited for: a run that is not current may be a replay or dead, and
        // one that wakes says so a few times only.
        let recorded = match purpose {
            Purpose::Answer(run) => self.runs.current() == Some(run),
            Purpose::Wake => false,
            Purpose::Data | Purpose::Probe | Purpose::ProbeInit | Purpose::SizeProbe => true,
        };
        let Some(carried) = carried.filter(|_| recorded) else {
            self.ledger.sent_unrecorded(number, now);
            return;
        };
        let marked = carried.marked;
        let (bytes, in_flight) = (len as u64, self.ledger.in_flight());
        let (size, limited) = (len as u16, self.app_limited);
        let recorded = match purpose {
            Purpose::SizeProbe => self.ledger.sent_size_probe(number, now, size, limited, carried),
            _ => self.ledger.sent(number, now, size, true, limited, carried),
        };
        if recorded.is_err() {
            // Only answers and probes are built while the ledger is full, without records; a later one makes good what this
            // carried.
            self.ledger.sent_unrecorded(number, now);
            return;
        }
        if purpose == Purpose::SizeProbe {
            self.search.on_probe_sent(size);
        }
        if marked {
            self.ecn.sent(number);
        }
        self.congestion.on_sent(now, bytes, in_flight);
        let rate = self.pacing_rate();
        self.pacer.spend(now, rate, bytes);
        self.arm(now);
    }
}
