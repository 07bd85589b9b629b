use crate::handshake::{Noise, PROLOGUE};
use crate::keys::{Agreed, PacketKey, init_key};
use crate::pair::Pair;
use crate::replay::Window;
use crate::session::{Asked, Message1, Message2, Session};
use crate::{Identity, PublicKey, number};
use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::{mem, ops::Range, time::Duration};
use stayfast_frame::{Entropy, Header, Kind, Opened, Rejected, Seal, SealError, SessionId, TAG_LEN, Via, layout};
use stayfast_units::{PacketNumber, RunId, Time};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

#[cfg(test)]
mod scenarios;

/// Sessions that a bound packet has proven.
const PROVEN: usize = 2;
/// Sessions that none has proven yet. Our own message 1, as long as it is not answered, counts as one.
const CANDIDATES: usize = 4;
/// Ephemeral keys that are remembered after their session is gone.
const SEEN: usize = 64;
/// For so long a candidate cannot be displaced by an INIT that was seen before.
const GRACE: Duration = Duration::from_secs(3);

/// All sessions with one peer, and the packet numbers of this run towards it. Everything here is in memory, and
/// dies with the process: the next run has other keys, so it may count from zero again.
///
/// Sealing and opening DATA packets allocates nothing. See the [crate's example](crate).
pub struct Sessions {
    noise: Noise,
    pair: Pair,
    run: RunId,
    aes: bool,
    entropy: Box<dyn Entropy + Send>,
    /// The next packet number.
    next: u64,
    /// Our message 1, until it is answered.
    asking: Option<Asking>,
    /// In the order in which they were made.
    sessions: Vec<Session>,
    made: u32,
    /// Ephemeral keys of the peer whose sessions are gone, oldest first.
    seen: VecDeque<[u8; 32]>,
    /// Whether the packet that is being opened changes the set of indices.
    indices_changed: bool,
    #[cfg(any(test, feature = "fuzzing"))]
    used: Option<([u8; 32], [u8; 12])>,
}

/// Our message 1: all INITs carry the same until one is answered.
struct Asking {
    ephemeral: Zeroizing<[u8; 32]>,
    payload: Zeroizing<[u8; layout::noise1::LEN]>,
    message1: Message1,
    own_index: u32,
    key: PacketKey,
    /// High bits of the packet numbers that this message 1 speaks of.
    number_high: u32,
}

impl Sessions {
    /// No session yet, and packet number 0 next.
    ///
    /// `psk`: a secret that both ends were given besides their keys, if any. `run`: drawn at random when the process
    /// started. `aes`: whether this machine has instructions for AES. `entropy` must be fresh in every run and every
    /// copy of one: all that a key needs to be used only once depends on it.
    pub fn new(
        identity: &Identity,
        peer: PublicKey,
        psk: Option<[u8; 32]>,
        run: RunId,
        aes: bool,
        entropy: Box<dyn Entropy + Send>,
    ) -> Sessions {
        let psk = Zeroizing::new(psk.unwrap_or_default());
        Sessions {
            pair: Pair::new(identity, &peer, &psk),
            noise: Noise { secret: identity.secret().clone(), peer: *peer.as_bytes(), psk, prologue: PROLOGUE },
            run,
            aes,
            entropy,
            next: 0,
            asking: None,
            sessions: Vec::with_capacity(PROVEN + CANDIDATES),
            made: 0,
            seen: VecDeque::with_capacity(SEEN),
            indices_changed: false,
            #[cfg(any(test, feature = "fuzzing"))]
            used: None,
        }
    }

    /// The name of the key and the nonce of the packet sealed last. No pair of them may ever come again, in any run
    /// of any copy.
    #[cfg(any(test, feature = "fuzzing"))]
    pub fn last_nonce(&self) -> Option<([u8; 32], [u8; 12])> {
        self.used
    }

    /// Goes on counting at `next`: what no run may do, for tests that show why, and for numbers near their limit.
    #[cfg(any(test, feature = "fuzzing"))]
    pub fn set_next_number(&mut self, next: u64) {
        self.next = next;
    }

    fn random<const N: usize>(&mut self) -> Zeroizing<[u8; N]> {
        let mut bytes = Zeroizing::new([0; N]);
        self.entropy.fill(&mut *bytes);
        bytes
    }

    fn random_index(&mut self) -> u32 {
        let mut index = u32::from_be_bytes(*self.random());
        while self.indices().any(|known| known == index) {
            index = index.wrapping_add(1);
        }
        index
    }

    fn find(&self, id: SessionId) -> Option<&Session> {
        self.sessions.iter().find(|session| session.id == id)
    }

    fn candidates(&self) -> usize {
        self.sessions.iter().filter(|session| !session.proven).count() + usize::from(self.asking.is_some())
    }

    /// Makes room for one candidate: the oldest goes.
    fn make_room(&mut self) {
        while self.candidates() >= CANDIDATES {
            match self.sessions.iter().position(|session| !session.proven) {
                Some(oldest) => self.evict(oldest),
                None => return,
            }
        }
    }

    fn evict(&mut self, at: usize) {
        let session = self.sessions.remove(at);
        self.indices_changed = true;
        if let Some(ephemeral) = session.asked.as_ref().and_then(|asked| asked.message1.first_chunk()) {
            if self.seen.len() == SEEN {
                self.seen.pop_front();
            }
            self.seen.push_back(*ephemeral);
        }
    }
}

/// Sealing.
impl Sessions {
    fn seal_init(&mut self, number: u64, packet: &mut [u8]) -> Option<()> {
        self.ask(number::high(number));
        let asking = self.asking.as_ref()?;
        *packet.first_mut()? = layout::first_byte(Kind::Init, self.aes);
        layout::write(packet, layout::init::TAG, &self.pair.outward.tag)?;
        layout::write(packet, layout::init::OWN_INDEX, &asking.own_index.to_be_bytes())?;
        layout::write(packet, layout::init::NUMBER, &(number as u32).to_be_bytes())?;
        layout::write(packet, layout::init::NOISE, &asking.message1)?;
        let mac = self.pair.outward.init_mac(packet.get(..layout::init::MAC.start)?);
        layout::write(packet, layout::init::MAC, &mac)?;
        asking.key.seal(number, packet, Kind::Init.header_len())
    }

    /// Sees to it that there is a message 1 for numbers with these high bits.
    fn ask(&mut self, number_high: u32) {
        if self.asking.as_ref().is_some_and(|asking| asking.number_high == number_high) {
            return;
        }
        self.asking = None;
        self.make_room();
        let (ephemeral, k_init) = (self.random::<32>(), self.random::<32>());
        let mut payload = Zeroizing::new([0; _]);
        payload[layout::noise1::K_INIT].copy_from_slice(&*k_init);
        payload[layout::noise1::RUN].copy_from_slice(&self.run.0.to_be_bytes());
        payload[layout::noise1::NUMBER_HIGH].copy_from_slice(&number_high.to_be_bytes());
        let mut message1 = [0; _];
        self.noise.ask(&ephemeral, &*payload, &mut message1);
        let (key, own_index) = (init_key(&*k_init), self.random_index());
        self.asking = Some(Asking { ephemeral, payload, message1, own_index, key, number_high });
    }

    fn seal_session(&self, id: SessionId, number: u64, packet: &mut [u8]) -> Option<()> {
        let session = self.find(id)?;
        let kind = session.kind();
        *packet.first_mut()? = layout::first_byte(kind, self.aes);
        layout::write(packet, layout::number(kind), &(number as u32).to_be_bytes())?;
        if kind == Kind::Data {
            layout::write(packet, layout::data::INDEX, &session.peer_index.to_be_bytes())?;
            session.send.key.seal(number, packet, kind.header_len())?;
            return session.send.mask(packet);
        }
        layout::write(packet, layout::reply::INDEX, &session.peer_index.to_be_bytes())?;
        layout::write(packet, layout::reply::OWN_INDEX, &session.own_index.to_be_bytes())?;
        layout::write(packet, layout::reply::NOISE, &session.message2)?;
        let mac = self.pair.outward.reply_mac(packet.get(..layout::reply::MAC.start)?, number::high(number));
        layout::write(packet, layout::reply::MAC, &mac)?;
        session.send.key.seal(number, packet, kind.header_len())
    }

    #[cfg(any(test, feature = "fuzzing"))]
    fn note_nonce(&mut self, via: Via, number: u64) {
        self.used = match via {
            Via::Init => self.asking.as_ref().map(|asking| asking.key.used(number)),
            Via::Session(id) => self.find(id).map(|session| session.send.key.used(number)),
        };
    }
}

/// Opening. Nothing changes before a packet has proven authentic.
impl Sessions {
    fn open_init(&mut self, now: Time, packet: &mut [u8], tag: [u8; 8], index: u32) -> Result<Opened, Rejected> {
        if !bool::from(tag.ct_eq(&self.pair.inward.tag)) {
            return Err(Rejected::Tag);
        }
        let mac = layout::read(packet, layout::init::MAC).ok_or(Rejected::Malformed)?;
        if !self.pair.inward.check_init(&packet[..layout::init::MAC.start], &mac) {
            return Err(Rejected::Mac);
        }
        let message1: Message1 = layout::read(packet, layout::init::NOISE).ok_or(Rejected::Malformed)?;
        let low = layout::read_u32(packet, layout::init::NUMBER).ok_or(Rejected::Malformed)?;
        let known = |session: &Session| session.asked.as_ref().filter(|asked| asked.message1 == message1).is_some();
        let (at, number) = match self.sessions.iter().position(known) {
            Some(at) => (at, self.open_known_init(packet, at, low)?),
            None => self.answer(now, packet, &message1, low, index)?,
        };
        self.opened(now, at, number, Kind::Init, packet.len())
    }

    /// Opens an INIT whose message 1 has a session.
    fn open_known_init(&self, packet: &mut [u8], at: usize, low: u32) -> Result<u64, Rejected> {
        let asked = self.sessions[at].asked.as_ref().ok_or(Rejected::Malformed)?;
        let number = number::join(asked.number_high, low).ok_or(Rejected::Malformed)?;
        asked.key.open(number, packet, Kind::Init.header_len()).ok_or(Rejected::Aead)?;
        Ok(number)
    }

    /// Opens an INIT whose message 1 has no session, and makes one.
    fn answer(
        &mut self,
        now: Time,
        packet: &mut [u8],
        message1: &Message1,
        low: u32,
        peer_index: u32,
    ) -> Result<(usize, u64), Rejected> {
        self.check_room(now, message1)?;
        let ephemeral = self.random::<32>();
        let mut payload = Zeroizing::new([0; layout::noise1::LEN]);
        let answering = self.noise.read(&ephemeral, message1, &mut *payload).ok_or(Rejected::Aead)?;
        let run = run(&*payload, layout::noise1::RUN)?;
        let number_high = layout::read_u32(&*payload, layout::noise1::NUMBER_HIGH).ok_or(Rejected::Malformed)?;
        let number = number::join(number_high, low).ok_or(Rejected::Malformed)?;
        let key = init_key(&payload[layout::noise1::K_INIT]);
        key.open(number, packet, Kind::Init.header_len()).ok_or(Rejected::Aead)?;

        let mut message2 = [0; _];
        let finished = answering.answer(&self.run.0.to_be_bytes(), &mut message2).ok_or(Rejected::Aead)?;
        self.make_room();
        let own_index = self.random_index();
        let agreed = Agreed { finished, aes: [layout::has_aes(packet[0]), self.aes], indices: [peer_index, own_index] };
        let (receive, send) = agreed.keys();
        let asked = Some(Asked { message1: *message1, key, number_high, answered: false });
        self.indices_changed = true;
        let id = self.next_id();
        let window = Window::new(number);
        let (proven, made, heard) = (false, now, now);
        let session =
            Session { id, own_index, peer_index, run, message2, asked, send, receive, window, proven, made, heard };
        self.sessions.push(session);
        Ok((self.sessions.len() - 1, number))
    }

    /// An INIT that was seen before must not displace a candidate that may still be proven: recorded INITs could
    /// otherwise keep every new session from being proven. Checked before any work on curves.
    fn check_room(&self, now: Time, message1: &Message1) -> Result<(), Rejected> {
        let young = |session: &Session| !session.proven && now - session.made < GRACE;
        let full =
            self.candidates() >= CANDIDATES && self.sessions.iter().find(|session| !session.proven).is_some_and(young);
        if full && self.seen.iter().any(|seen| message1.starts_with(seen)) { Err(Rejected::Limit) } else { Ok(()) }
    }

    fn open_reply(&mut self, now: Time, packet: &mut [u8], index: u32, peer_index: u32) -> Result<Opened, Rejected> {
        let answered = self.sessions.iter().position(|session| session.own_index == index && session.asked.is_none());
        if answered.is_none() && self.asking.as_ref().is_none_or(|asking| asking.own_index != index) {
            return Err(Rejected::Index);
        }
        let mac = layout::read(packet, layout::reply::MAC).ok_or(Rejected::Malformed)?;
        let header = &packet[..layout::reply::MAC.start];
        let number_high = self.pair.inward.check_reply(header, &mac).ok_or(Rejected::Mac)?;
        let low = layout::read_u32(packet, layout::reply::NUMBER).ok_or(Rejected::Malformed)?;
        let number = number::join(number_high, low).ok_or(Rejected::Malformed)?;
        let message2: Message2 = layout::read(packet, layout::reply::NOISE).ok_or(Rejected::Malformed)?;
        let at = match answered {
            // Another run's answer to the same message 1: it is from before the one that we took, or will be asked anew.
            Some(at) if self.sessions[at].message2 != message2 => return Err(Rejected::Replay),
            Some(at) => {
                self.sessions[at].receive.key.open(number, packet, Kind::Reply.header_len()).ok_or(Rejected::Aead)?;
                at
            }
            None => self.finish(now, packet, message2, number, peer_index)?,
        };
        self.opened(now, at, number, Kind::Reply, packet.len())
    }

    /// Opens the first REPLY to our message 1, and makes the session.
    fn finish(
        &mut self,
        now: Time,
        packet: &mut [u8],
        message2: Message2,
        number: u64,
        peer_index: u32,
    ) -> Result<usize, Rejected> {
        let asking = self.asking.as_ref().ok_or(Rejected::Index)?;
        let mut payload = [0; layout::noise2::LEN];
        let finished =
            self.noise.finish(&asking.ephemeral, &*asking.payload, &message2, &mut payload).ok_or(Rejected::Aead)?;
        let (run, own_index) = (run(&payload, layout::noise2::RUN)?, asking.own_index);
        let agreed = Agreed { finished, aes: [self.aes, layout::has_aes(packet[0])], indices: [own_index, peer_index] };
        let (send, receive) = agreed.keys();
        receive.key.open(number, packet, Kind::Reply.header_len()).ok_or(Rejected::Aead)?;
        self.asking = None;
        let id = self.next_id();
        let window = Window::new(number);
        let (asked, proven, made, heard) = (None, false, now, now);
        let session =
            Session { id, own_index, peer_index, run, message2, asked, send, receive, window, proven, made, heard };
        self.sessions.push(session);
        Ok(self.sessions.len() - 1)
    }

    fn open_data(&mut self, now: Time, packet: &mut [u8], index: u32) -> Result<Opened, Rejected> {
        let at = self.sessions.iter().position(|session| session.own_index == index).ok_or(Rejected::Index)?;
        let session = &self.sessions[at];
        session.receive.mask(packet).ok_or(Rejected::Malformed)?;
        let low = layout::read_u32(packet, layout::data::NUMBER).ok_or(Rejected::Malformed)?;
        let number = number::expand(low, session.window.largest()).ok_or(Rejected::Malformed)?;
        session.receive.key.open(number, packet, Kind::Data.header_len()).ok_or(Rejected::Aead)?;
        self.opened(now, at, number, Kind::Data, packet.len())
    }

    /// What follows when a packet is authentic. That it is new is asked only now: an answer before would depend on
    /// its number, which is masked for a reason (RFC 9001, section 9.5).
    fn opened(&mut self, now: Time, at: usize, number: u64, kind: Kind, len: usize) -> Result<Opened, Rejected> {
        let session = &mut self.sessions[at];
        if !session.window.insert(number) {
            return Err(Rejected::Replay);
        }
        session.heard = now;
        if let (Kind::Data, Some(asked)) = (kind, &mut session.asked) {
            asked.answered = true;
        }
        let (id, run, bound) = (session.id, session.run, kind != Kind::Init);
        let newly_current = bound && self.prove(at);
        Ok(Opened {
            number: PacketNumber(number),
            session: id,
            run,
            kind,
            bound,
            newly_current,
            indices_changed: self.indices_changed,
            payload: kind.header_len()..len - TAG_LEN,
        })
    }

    /// A bound packet came in this session. Returns whether that made it the current one: a session that was made
    /// before the current one stays behind it, however late it is proven. Of too many proven sessions that one
    /// goes that has been silent for longest.
    fn prove(&mut self, at: usize) -> bool {
        if mem::replace(&mut self.sessions[at].proven, true) {
            return false;
        }
        let (id, current) = (self.sessions[at].id, self.current());
        if self.sessions.iter().filter(|session| session.proven).count() > PROVEN {
            let spare = |session: &Session| session.proven && session.id != id && Some(session.id) != current;
            let spares = self.sessions.iter().enumerate().filter(|(_, session)| spare(session));
            if let Some((silent, _)) = spares.min_by_key(|(_, session)| session.heard) {
                self.evict(silent);
            }
        }
        current == Some(id)
    }

    fn next_id(&mut self) -> SessionId {
        // At 20 handshakes a second they last for six years; and only equality counts.
        self.made = self.made.wrapping_add(1);
        SessionId(self.made)
    }
}

/// The run in a message's payload. No run has the name that means none.
fn run(payload: &[u8], field: Range<usize>) -> Result<RunId, Rejected> {
    layout::read_u64(payload, field).map(RunId).filter(|run| *run != RunId::NONE).ok_or(Rejected::Malformed)
}

impl Seal for Sessions {
    fn kind(&self, via: Via) -> Option<Kind> {
        match via {
            Via::Init => Some(Kind::Init),
            Via::Session(id) => self.find(id).map(Session::kind),
        }
    }

    fn seal(&mut self, via: Via, packet: &mut [u8]) -> Result<PacketNumber, SealError> {
        let kind = self.kind(via).ok_or(SealError::NoSession)?;
        if packet.len() < kind.overhead() {
            return Err(SealError::TooShort);
        }
        let number = self.next;
        if number >= number::LIMIT {
            return Err(SealError::Exhausted);
        }
        // Drawn before it is used: whatever fails now, no number is used twice.
        self.next += 1;
        match via {
            Via::Init => self.seal_init(number, packet),
            Via::Session(id) => self.seal_session(id, number, packet),
        }
        .ok_or(SealError::TooShort)?;
        #[cfg(any(test, feature = "fuzzing"))]
        self.note_nonce(via, number);
        Ok(PacketNumber(number))
    }

    fn open(&mut self, now: Time, packet: &mut [u8]) -> Result<Opened, Rejected> {
        self.indices_changed = false;
        match Header::parse(packet)? {
            Header::Init { tag, own_index } => self.open_init(now, packet, tag, own_index),
            Header::Reply { index, own_index } => self.open_reply(now, packet, index, own_index),
            Header::Data { index } => self.open_data(now, packet, index),
        }
    }

    fn next_number(&self) -> PacketNumber {
        PacketNumber(self.next)
    }

    fn current(&self) -> Option<SessionId> {
        self.sessions.iter().rfind(|session| session.proven).map(|session| session.id)
    }

    fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        let asking = self.asking.iter().map(|asking| asking.own_index);
        asking.chain(self.sessions.iter().map(|session| session.own_index))
    }

    fn tag(&self) -> [u8; 8] {
        self.pair.inward.tag
    }
}
