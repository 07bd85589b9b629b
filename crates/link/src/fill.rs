//! How a packet is filled with records: what was lost first, then the streams in turn.

use crate::carried::{AliasNumber, Carried, Item};
use crate::config::{ALIAS_REACH, FIRST_CREDIT, MAX_AHEAD};
use crate::outgoing::Position;
use crate::sender::{Alias, Resend, Sender};
use stayfast_frame::{Frame, Writer};
use stayfast_store::{Hole, Item as Record, Origin};
use stayfast_units::{RecordNumber, StreamId, Time};

/// Bytes of OPEN and ORIGIN beside the stream's name, at most.
const OPEN_OVERHEAD: usize = 48;

impl Sender {
    /// Something to send for which credit is there?
    pub(crate) fn has_more(&self) -> bool {
        !self.resend.is_empty() || self.round.iter().any(|id| self.may_send(*id))
    }

    fn may_send(&self, id: StreamId) -> bool {
        let stream = &self.streams[id.0 as usize];
        if stream.halted || stream.refused_until.is_some() || stream.find(stream.at.number).is_none() {
            return false;
        }
        stream.at.offset > 0 || self.may_begin(id, stream.len_of(stream.at.number))
    }

    /// Is the whole length of a record covered by credit? Without a CREDIT yet that is 64 KiB. Where nothing else is
    /// outstanding one record always is, or one longer than the credit could never go.
    fn may_begin(&self, id: StreamId, len: u64) -> bool {
        let stream = &self.streams[id.0 as usize];
        let others_wait = self.waits().is_some_and(|waiting| waiting != id);
        if others_wait || stream.at.number.0 >= stream.stored.0.saturating_add(MAX_AHEAD) {
            return false;
        }
        let own = match (self.credit, stream.credit) {
            (Some(_), Some((_, bytes))) => bytes,
            _ => FIRST_CREDIT,
        };
        !self.exceeds_link(len) && (stream.begun == 0 || stream.begun.saturating_add(len) <= own)
    }

    fn exceeds_link(&self, len: u64) -> bool {
        self.used > 0 && self.used.saturating_add(len) > self.credit.unwrap_or(FIRST_CREDIT)
    }

    /// The stream that waits for link credit, if it still does: it may have been stored, or have come to a stop.
    fn waits(&self) -> Option<StreamId> {
        self.waiting.filter(|id| self.is_blocked(*id) && self.link_blocks(*id))
    }

    /// Fills a packet: what was lost first, then the streams in turn.
    pub(crate) fn fill(&mut self, w: &mut Writer<'_>, carried: &mut Carried) {
        if !self.fill_resend(w, carried) {
            return;
        }
        for _ in 0..self.round.len() {
            let Some(id) = self.round.pop_front() else { return };
            let full = self.fill_new(id, w, carried);
            if self.may_send(id) || self.is_blocked(id) {
                self.round.push_back(id);
            } else {
                self.stream(id).in_round = false;
            }
            if full {
                return;
            }
        }
    }

    /// Has records in memory and lacks nothing but credit.
    fn is_blocked(&self, id: StreamId) -> bool {
        let stream = &self.streams[id.0 as usize];
        !stream.halted && stream.refused_until.is_none() && stream.find(stream.at.number).is_some()
    }

    /// Sends again what was lost. False if the packet is full.
    fn fill_resend(&mut self, w: &mut Writer<'_>, carried: &mut Carried) -> bool {
        while let Some(Resend { packet, item }) = self.resend.pop_front() {
            let rest = match item {
                Item::Records { stream, first, count } => {
                    let out = &self.streams[stream.0 as usize];
                    // What was taken back since goes its normal way.
                    let end = first.plus(count.into()).min(out.at.number);
                    let first = first.max(out.stored);
                    self.resend_records(packet, stream, first, end, w, carried)
                }
                Item::Part { stream, number, offset, len } => {
                    let from = Position { number, offset };
                    let sent = self.streams[stream.0 as usize].at;
                    let len = if number == sent.number { len.min(sent.offset.saturating_sub(offset)) } else { len };
                    if number <= sent.number && len > 0 {
                        self.resend_part(stream, from, len, w, carried)
                    } else {
                        None
                    }
                }
                _ => None,
            };
            if let Some(item) = rest {
                self.resend.push_front(Resend { packet, item });
                return false;
            }
        }
        true
    }

    fn resend_records(
        &mut self,
        packet: u64,
        stream: StreamId,
        first: RecordNumber,
        end: RecordNumber,
        w: &mut Writer<'_>,
        carried: &mut Carried,
    ) -> Option<Item> {
        if first >= end {
            return None;
        }
        let item = |from: RecordNumber| Item::Records { stream, first: from, count: (end.0 - from.0) as u16 };
        let (origin, span) = self.streams[stream.0 as usize].span(first)?;
        let Some(alias) = self.open(stream, origin, w, carried) else { return Some(item(first)) };
        let from = Position::start(first);
        let (Position { number, offset }, bytes) = self.write_records(stream, alias, from, end.min(span), w, carried);
        self.bytes_resent += bytes;
        if offset == 0 {
            return (number < end).then(|| item(number));
        }
        // It was cut: the rest goes next.
        if number.next() < end {
            self.resend.push_front(Resend { packet, item: item(number.next()) });
        }
        let len = self.streams[stream.0 as usize].len_of(number) as u32 - offset;
        Some(Item::Part { stream, number, offset, len })
    }

    fn resend_part(
        &mut self,
        stream: StreamId,
        from: Position,
        len: u32,
        w: &mut Writer<'_>,
        carried: &mut Carried,
    ) -> Option<Item> {
        let out = &self.streams[stream.0 as usize];
        if from.number < out.stored {
            return None;
        }
        let (origin, _) = out.find(from.number)?;
        let whole = Item::Part { stream, number: from.number, offset: from.offset, len };
        let Some(alias) = self.open(stream, origin, w, carried) else { return Some(whole) };
        let sent = self.write_part(stream, alias, from, from.offset + len, w, carried)?;
        self.bytes_resent += u64::from(sent);
        (sent < len).then_some(Item::Part { stream, number: from.number, offset: from.offset + sent, len: len - sent })
    }

    /// Sends new bytes of one stream. True if the packet is full.
    fn fill_new(&mut self, id: StreamId, w: &mut Writer<'_>, carried: &mut Carried) -> bool {
        while self.may_send(id) {
            let at = self.stream(id).at;
            let Some((origin, end)) = self.streams[id.0 as usize].span(at.number) else { return false };
            let Some(alias) = self.open(id, origin, w, carried) else { return true };
            let covered = self.covered(id, end, w.remaining() as u64);
            let (to, bytes) = self.write_records(id, alias, at, covered, w, carried);
            if to == at {
                return true;
            }
            self.advance(id, to, bytes);
        }
        if self.waits().is_none() {
            self.waiting = (self.is_blocked(id) && self.link_blocks(id)).then_some(id);
        }
        !carried.has_room(2)
    }

    /// It is the link's credit, not the stream's own, that holds this stream back.
    fn link_blocks(&self, id: StreamId) -> bool {
        let stream = &self.streams[id.0 as usize];
        stream.at.offset == 0 && self.exceeds_link(stream.len_of(stream.at.number))
    }

    /// New bytes up to `to` were sent.
    fn advance(&mut self, id: StreamId, to: Position, bytes: u64) {
        let stream = &self.streams[id.0 as usize];
        // The whole of a record is reserved when it is begun.
        let begun = bytes + stream.left(to) - stream.left(stream.at);
        self.begin(id, begun);
        self.stream(id).at = to;
        self.bytes_sent += bytes;
    }

    fn begin(&mut self, id: StreamId, len: u64) {
        self.stream(id).begun += len;
        self.used += len;
        if self.waiting == Some(id) {
            self.waiting = None;
        }
    }

    /// How far below `end` credit reaches, if `room` bytes do.
    fn covered(&mut self, id: StreamId, end: RecordNumber, room: u64) -> RecordNumber {
        let (used, begun, waiting) = (self.used, self.streams[id.0 as usize].begun, self.waiting);
        let Position { number: mut covered, offset } = self.streams[id.0 as usize].at;
        let mut ahead = self.streams[id.0 as usize].left(self.streams[id.0 as usize].at);
        if offset > 0 {
            covered = covered.next();
        }
        while covered < end && ahead <= room {
            let len = self.streams[id.0 as usize].len_of(covered);
            if !self.may_begin(id, len) {
                break;
            }
            self.begin(id, len);
            ahead += len;
            covered = covered.next();
        }
        (self.used, self.streams[id.0 as usize].begun, self.waiting) = (used, begun, waiting);
        covered
    }

    /// Records from `from` to below `end` in one frame: the rest of one that was cut, whole ones, the beginning of one
    /// that does not fit. Returns where it stopped, and the bytes.
    fn write_records(
        &self,
        id: StreamId,
        alias: AliasNumber,
        from: Position,
        end: RecordNumber,
        w: &mut Writer<'_>,
        carried: &mut Carried,
    ) -> (Position, u64) {
        let stream = &self.streams[id.0 as usize];
        let nothing = (from, 0);
        if !carried.has_room(1) || from.number >= end {
            return nothing;
        }
        if let Some(Record::Hole(first, hole)) = stream.get(from.number) {
            if w.put(&hole_frame(alias, first, hole)).is_err() {
                return nothing;
            }
            carried.push(Item::Records { stream: id, first, count: 1 });
            return (Position::start(first.next()), 0);
        }
        let Ok(mut records) = w.records(alias, from.number, from.offset) else { return nothing };
        let part = |at: Position, len| Item::Part { stream: id, number: at.number, offset: at.offset, len };
        let body = |at: Position| match stream.get(at.number) {
            Some(Record::Record(_, body)) if at.number < end => Some(body),
            _ => None,
        };
        let (mut at, mut bytes) = (from, 0);
        if at.offset > 0
            && let Some(body) = body(at)
            && records.push(body).is_ok()
        {
            bytes = body.len() as u64 - u64::from(at.offset);
            carried.push(part(at, bytes as u32));
            at = Position::start(at.number.next());
        }
        let first = at.number;
        while carried.has_room(1)
            && at.offset == 0
            && let Some(body) = body(at)
            && records.push(body).is_ok()
        {
            bytes += body.len() as u64;
            at.number = at.number.next();
        }
        if at.number > first {
            carried.push(Item::Records { stream: id, first, count: (at.number.0 - first.0) as u16 });
        }
        if carried.has_room(1)
            && let Some(len) = body(at).and_then(|body| records.cut(body))
        {
            carried.push(part(at, len as u32));
            bytes += len as u64;
            at.offset += len as u32;
        }
        (at, bytes)
    }

    /// Bytes of one record from `from` up to offset `end`, as many as fit: none if the packet is full.
    fn write_part(
        &self,
        id: StreamId,
        alias: AliasNumber,
        from: Position,
        end: u32,
        w: &mut Writer<'_>,
        carried: &mut Carried,
    ) -> Option<u32> {
        let (_, run) = self.streams[id.0 as usize].find(from.number)?;
        let body = run.body(from.number);
        if !carried.has_room(1) || from.offset >= end {
            return Some(0);
        }
        let upto = body.get(..end as usize)?;
        let sent = w.part(alias, from.number, body.len() as u32, from.offset, upto).unwrap_or(0) as u32;
        if sent > 0 {
            carried.push(Item::Part { stream: id, number: from.number, offset: from.offset, len: sent });
        }
        Some(sent)
    }

    /// The alias for records of `origin`, opened in this packet unless the receiver has confirmed it.
    /// `None` if the packet is full.
    fn open(&mut self, id: StreamId, origin: Origin, w: &mut Writer<'_>, carried: &mut Carried) -> Option<AliasNumber> {
        let current = self.streams[id.0 as usize].alias;
        let known = current.filter(|n| self.aliases.get(n).is_some_and(|alias| alias.origin == origin));
        let number = match known.filter(|n| n.saturating_add(ALIAS_REACH) >= self.next_alias) {
            Some(number) => number,
            None => self.new_alias(id, origin),
        };
        let alias = self.aliases.get(&number)?;
        let confirmed = alias.confirmed && !carried.introduces;
        if confirmed || carried.iter().any(|item| item == Item::Open { alias: number }) {
            return carried.has_room(1).then_some(number);
        }
        let name = &self.streams[id.0 as usize].name;
        if !carried.has_room(2) || w.remaining() < name.len() + OPEN_OVERHEAD {
            return None;
        }
        let Origin { first, lineage, parent } = origin;
        w.put(&Frame::Open { alias: number, store: self.store, name }).ok()?;
        w.put(&Frame::Origin { alias: number, first, lineage, parent }).ok()?;
        carried.push(Item::Open { alias: number });
        Some(number)
    }

    fn new_alias(&mut self, id: StreamId, origin: Origin) -> AliasNumber {
        // Records of an older lineage that go again use the alias they had, if it is still near.
        let near = self.next_alias.saturating_sub(ALIAS_REACH);
        let old = self.aliases.range(near..).find(|(_, alias)| alias.stream == id && alias.origin == origin);
        if let Some((number, _)) = old {
            return *number;
        }
        let number = self.next_alias;
        self.next_alias = self.next_alias.saturating_add(1);
        self.aliases.insert(number, Alias { stream: id, origin, confirmed: false });
        self.stream(id).alias = Some(number);
        if number.is_multiple_of(ALIAS_REACH) {
            self.prune_aliases();
        }
        number
    }

    /// QUERY for every stream with records that are not STORED.
    pub(crate) fn fill_questions(&mut self, now: Time, w: &mut Writer<'_>, carried: &mut Carried) {
        if self.ask_at.is_none_or(|at| at > now) {
            return;
        }
        self.ask_at = None;
        // A packet has room for some of them: each time another stream is the first.
        for _ in 0..self.streams.len() {
            let i = self.ask_from % self.streams.len();
            if !self.ask(StreamId(i as u32), w, carried) {
                return;
            }
            self.ask_from = i + 1;
        }
    }

    /// QUERY for one stream, if anything of it is outstanding. False if the packet is full.
    fn ask(&mut self, id: StreamId, w: &mut Writer<'_>, carried: &mut Carried) -> bool {
        let stream = &self.streams[id.0 as usize];
        let trimmed = stream.stored;
        let Some((origin, _)) = stream.find(trimmed).filter(|_| stream.is_outstanding()) else { return true };
        // No answer to the last question: the receiver may have forgotten what the alias stands for, since it keeps few
        // of our runs apart if there are many.
        carried.introduces |= stream.question.is_some();
        let Some(alias) = self.open(id, origin, w, carried) else { return false };
        self.nonce = self.nonce.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let nonce = self.nonce >> 2;
        let written = w.put(&Frame::Query { nonce, alias, trimmed }).is_ok();
        if written {
            self.stream(id).question = Some((nonce, trimmed));
        }
        written
    }
}

fn hole_frame(alias: AliasNumber, first: RecordNumber, hole: Hole) -> Frame<'static> {
    match hole {
        Hole::Gap => Frame::Gap { alias, first, count: 1 },
        Hole::Expired => Frame::Expired { alias, first, count: 1 },
    }
}
