//! Two ends, and what can come between them.

use crate::{Identity, Sessions};
use alloc::{boxed::Box, sync::Arc, vec, vec::Vec};
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use stayfast_frame::{Entropy, Kind, Opened, Rejected, Seal, SealError, SessionId, Via, layout};
use stayfast_testkit::SplitMix;
use stayfast_units::{PacketNumber, RunId, Time};

const START: Time = Time::from_millis(1_000);

/// The node of this name, towards its peer: a and b know each other.
fn node(name: char, run: u64, aes: bool, psk: Option<[u8; 32]>, entropy: Box<dyn Entropy + Send>) -> Sessions {
    let identity = |name: char| Identity::generate(&mut SplitMix(u64::from(name)));
    let peer = identity(if name == 'b' { 'a' } else { 'b' }).public();
    Sessions::new(&identity(name), peer, psk, RunId(run), aes, entropy)
}

fn start(name: char, run: u64) -> Sessions {
    node(name, run, true, None, Box::new(SplitMix(run << 32)))
}

fn seal(from: &mut Sessions, via: Via, payload: &[u8]) -> Vec<u8> {
    let kind = from.kind(via).unwrap();
    let mut packet = vec![0; kind.overhead() + payload.len()];
    packet[kind.header_len()..][..payload.len()].copy_from_slice(payload);
    from.seal(via, &mut packet).unwrap();
    packet
}

fn init(from: &mut Sessions) -> Vec<u8> {
    seal(from, Via::Init, b"first")
}

fn open_at(now: Time, to: &mut Sessions, packet: &[u8]) -> Result<Opened, Rejected> {
    to.open(now, &mut packet.to_vec())
}

fn open(to: &mut Sessions, packet: &[u8]) -> Result<Opened, Rejected> {
    open_at(START, to, packet)
}

/// Seals and opens, and sees that the payload came over.
fn pass(from: &mut Sessions, to: &mut Sessions, via: Via) -> Opened {
    let mut packet = seal(from, via, b"some payload");
    let opened = to.open(START, &mut packet).unwrap();
    assert_eq!(&packet[opened.payload.clone()], b"some payload");
    opened
}

/// INIT, REPLY, DATA. The sessions at the first and at the second end.
fn meet(a: &mut Sessions, b: &mut Sessions) -> (SessionId, SessionId) {
    let at_b = pass(a, b, Via::Init).session;
    let at_a = pass(b, a, Via::Session(at_b)).session;
    assert!(pass(a, b, Via::Session(at_a)).newly_current);
    (at_a, at_b)
}

fn current(end: &Sessions) -> Via {
    Via::Session(end.current().unwrap())
}

/// One packet of each kind, for the second end of the pair, which has not opened it.
fn one_of_each() -> [(Kind, Sessions, Vec<u8>); 3] {
    let ends = || (start('a', 1), start('b', 2));
    let (mut a, b) = ends();
    let first = init(&mut a);
    let (mut c, mut d) = ends();
    let at_d = pass(&mut c, &mut d, Via::Init).session;
    let reply = seal(&mut d, Via::Session(at_d), b"answer");
    let (mut e, mut f) = ends();
    let (at_e, _) = meet(&mut e, &mut f);
    let data = seal(&mut e, Via::Session(at_e), b"data");
    [(Kind::Init, b, first), (Kind::Reply, c, reply), (Kind::Data, f, data)]
}

#[test]
fn no_round_trip_stands_before_a_packet_after_a_restart_of_either_end() {
    let (mut a, mut b) = (start('a', 1), start('b', 2));
    let (at_a, _) = meet(&mut a, &mut b);

    // The peer has died: the old session is silent, and the first INIT is opened.
    let mut b = start('b', 3);
    assert_eq!(open(&mut b, &seal(&mut a, Via::Session(at_a), b"")), Err(Rejected::Index));
    let opened = pass(&mut a, &mut b, Via::Init);
    assert_eq!((opened.run, opened.bound, opened.newly_current), (RunId(1), false, false));
    let answer = pass(&mut b, &mut a, Via::Session(opened.session));
    assert_eq!((answer.run, answer.bound, answer.newly_current), (RunId(3), true, true));

    // This end has died: the same from the other side.
    let mut a = start('a', 4);
    let opened = pass(&mut a, &mut b, Via::Init);
    assert_eq!(opened.run, RunId(4));
    assert_ne!(b.current(), Some(opened.session), "unbound: it may be a replay");
    pass(&mut b, &mut a, Via::Session(opened.session));
    let via = current(&a);
    assert!(pass(&mut a, &mut b, via).newly_current);
}

#[test]
fn ends_that_begin_at_once_both_get_through() {
    let (mut a, mut b) = (start('a', 1), start('b', 2));
    let (from_a, from_b) = (init(&mut a), init(&mut b));
    let at_b = open(&mut b, &from_a).unwrap().session;
    let at_a = open(&mut a, &from_b).unwrap().session;
    let (from_a, from_b) = (seal(&mut a, Via::Session(at_a), b""), seal(&mut b, Via::Session(at_b), b""));
    assert!(open(&mut b, &from_a).unwrap().newly_current);
    assert!(open(&mut a, &from_b).unwrap().newly_current);
    for _ in 0..3 {
        let (via_a, via_b) = (current(&a), current(&b));
        let (from_a, from_b) = (seal(&mut a, via_a, b"x"), seal(&mut b, via_b, b"x"));
        assert_eq!(open(&mut b, &from_a).unwrap().kind, Kind::Data);
        assert_eq!(open(&mut a, &from_b).unwrap().kind, Kind::Data);
    }
    assert_eq!((a.indices().count(), b.indices().count()), (2, 2));
}

#[test]
fn every_changed_byte_is_noticed_where_it_stands_and_changes_nothing() {
    for (kind, mut to, packet) in one_of_each() {
        for at in 0..packet.len() {
            for bit in 0..8 {
                let mut changed = packet.clone();
                changed[at] ^= 1 << bit;
                let reason = open(&mut to, &changed).unwrap_err();
                let expected = match kind {
                    // Type, token and version, and then whatever a packet of another type would be.
                    _ if at == 0 => matches!(reason, _ if bit == 5 || reason != Rejected::Replay),
                    Kind::Init if layout::init::TAG.contains(&at) => reason == Rejected::Tag,
                    Kind::Init if at < Kind::Init.header_len() => reason == Rejected::Mac,
                    Kind::Reply if layout::reply::INDEX.contains(&at) => reason == Rejected::Index,
                    // The high bits of the number are in the last four bytes.
                    Kind::Reply if at < layout::reply::MAC.end - 4 => reason == Rejected::Mac,
                    Kind::Data if layout::data::INDEX.contains(&at) => reason == Rejected::Index,
                    Kind::Reply if at < layout::reply::MAC.end => reason == Rejected::Aead || bit > 5,
                    _ => reason == Rejected::Aead,
                };
                assert!(expected, "{kind:?}, bit {bit} of byte {at}: {reason}");
                if bit == 0 && at >= kind.header_len() + 4 {
                    break;
                }
            }
        }
        assert_eq!(open(&mut to, &packet).unwrap().kind, kind);
        assert_eq!(open(&mut to, &packet), Err(Rejected::Replay));
    }
}

#[test]
fn a_cut_packet_is_refused_whatever_its_kind() {
    for (kind, mut to, packet) in one_of_each() {
        for len in 0..packet.len() {
            let reason = open(&mut to, &packet[..len]).unwrap_err();
            assert_eq!(reason, if len < kind.overhead() { Rejected::Malformed } else { Rejected::Aead }, "{len}");
        }
        let longer = [&packet[..], &[0]].concat();
        assert_eq!(open(&mut to, &longer), Err(Rejected::Aead));
        assert!(open(&mut to, &packet).is_ok());
    }
}

#[test]
fn nobody_talks_two_ends_out_of_aes() {
    for (kind, mut to, mut packet) in one_of_each() {
        assert!(layout::has_aes(packet[0]));
        packet[0] ^= layout::first_byte(kind, true) ^ layout::first_byte(kind, false);
        let reason = if kind == Kind::Data { Rejected::Aead } else { Rejected::Mac };
        assert_eq!(open(&mut to, &packet), Err(reason));
    }
    for (at_a, at_b) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut a = node('a', 1, at_a, None, Box::new(SplitMix(3)));
        let mut b = node('b', 2, at_b, None, Box::new(SplitMix(4)));
        let (_, session) = meet(&mut a, &mut b);
        pass(&mut b, &mut a, Via::Session(session));
    }
}

#[test]
fn strangers_get_silence() {
    let (mut a, mut b, mut c) = (start('a', 1), start('b', 2), start('c', 3));
    let mut packet = init(&mut c);
    assert_eq!(open(&mut b, &packet), Err(Rejected::Tag));
    // Tags can be seen by everyone on the path. They help nobody.
    layout::write(&mut packet, layout::init::TAG, &b.tag()).unwrap();
    assert_eq!(open(&mut b, &packet), Err(Rejected::Mac));
    assert_eq!(init(&mut a)[layout::init::TAG], b.tag());
    // So does a peer that was not given the same secret.
    let mut other = node('a', 4, true, Some([1; 32]), Box::new(SplitMix(4)));
    assert_eq!(open(&mut b, &init(&mut other)), Err(Rejected::Tag));
    let mut right = node('b', 5, true, Some([1; 32]), Box::new(SplitMix(5)));
    meet(&mut other, &mut right);
    // An end's own packets are not for itself.
    let own = init(&mut a);
    assert_eq!(open(&mut a, &own), Err(Rejected::Tag));
}

#[test]
fn late_packets_are_opened_once_and_as_long_as_the_window_reaches() {
    let (mut a, mut b) = (start('a', 1), start('b', 2));
    let (session, _) = meet(&mut a, &mut b);
    let first = a.next_number().0;
    let early: Vec<_> = (0..3).map(|_| seal(&mut a, Via::Session(session), b"")).collect();
    a.set_next_number(first + 4096);
    let (at_edge, beyond) = (seal(&mut a, Via::Session(session), b""), seal(&mut a, Via::Session(session), b""));
    assert_eq!(open(&mut b, &at_edge).unwrap().number, PacketNumber(first + 4096));
    assert_eq!(open(&mut b, &early[0]), Err(Rejected::Replay), "one too old");
    assert_eq!(open(&mut b, &early[1]).unwrap().number, PacketNumber(first + 1), "the oldest that can be told");
    assert_eq!(open(&mut b, &early[1]), Err(Rejected::Replay));
    // Only an authentic packet moves the window.
    let mut forged = beyond.clone();
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(open(&mut b, &forged), Err(Rejected::Aead));
    assert!(open(&mut b, &early[2]).is_ok());
    assert!(open(&mut b, &beyond).is_ok());
    assert_eq!(open(&mut b, &early[2]), Err(Rejected::Replay));
    assert_eq!(open(&mut b, &at_edge), Err(Rejected::Replay));
}

#[test]
fn an_answer_is_a_reply_until_data_comes() {
    let (mut a, mut b) = (start('a', 1), start('b', 2));
    let at_b = Via::Session(pass(&mut a, &mut b, Via::Init).session);
    let at_a = Via::Session(pass(&mut b, &mut a, at_b).session);
    assert_eq!((a.kind(at_a), b.kind(at_b)), (Some(Kind::Data), Some(Kind::Reply)));
    assert_eq!(pass(&mut b, &mut a, at_b).kind, Kind::Reply);
    pass(&mut a, &mut b, at_a);
    assert_eq!(b.kind(at_b), Some(Kind::Data));
    assert_eq!(pass(&mut b, &mut a, at_b).kind, Kind::Data);
    assert_eq!(b.kind(Via::Session(SessionId(77))), None);
    assert_eq!(b.seal(Via::Session(SessionId(77)), &mut [0; 99]), Err(SealError::NoSession));
    assert_eq!(b.seal(at_b, &mut [0; 24]), Err(SealError::TooShort));
}

/// Entropy that counts how often it is asked.
struct Counted(SplitMix, Arc<AtomicUsize>);

impl Entropy for Counted {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.fill(bytes);
    }
}

#[test]
fn work_on_curves_waits_for_a_mac_and_is_not_done_twice() {
    let asked = Arc::new(AtomicUsize::new(0));
    let mut a = start('a', 1);
    let mut b = node('b', 2, true, None, Box::new(Counted(SplitMix(5), asked.clone())));
    let (packet, again) = (init(&mut a), init(&mut a));
    assert_eq!(packet[layout::init::NOISE], again[layout::init::NOISE]);
    for at in 0..layout::init::MAC.end {
        let mut changed = packet.clone();
        changed[at] ^= 4;
        assert!(open(&mut b, &changed).is_err());
    }
    // An ephemeral key is drawn right before the curve is used.
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let session = open(&mut b, &packet).unwrap().session;
    let drawn = asked.load(Ordering::Relaxed);
    assert!(drawn > 0);
    assert_eq!(open(&mut b, &again).unwrap().session, session);
    assert_eq!(open(&mut b, &packet), Err(Rejected::Replay));
    assert_eq!(asked.load(Ordering::Relaxed), drawn);
}

#[test]
fn a_fifth_candidate_displaces_the_oldest() {
    let mut b = start('b', 9);
    let mut runs: Vec<_> = (1..=5).map(|run| start('a', run)).collect();
    let sessions: Vec<_> = runs[..4].iter_mut().map(|a| pass(a, &mut b, Via::Init).session).collect();
    assert_eq!(b.indices().count(), 4);
    let before: Vec<_> = b.indices().collect();
    let fifth = pass(&mut runs[4], &mut b, Via::Init);
    assert!(fifth.indices_changed);
    assert_eq!(b.indices().filter(|index| before.contains(index)).count(), 3);
    assert_eq!(b.kind(Via::Session(sessions[0])), None);
    assert!(sessions[1..].iter().all(|session| b.kind(Via::Session(*session)) == Some(Kind::Reply)));

    // Our own message 1 is a candidate too, and stays.
    let own = init(&mut b);
    assert_eq!(b.kind(Via::Session(sessions[1])), None);
    assert_eq!(b.indices().count(), 4);
    pass(&mut start('a', 6), &mut b, Via::Init);
    let mut a = start('a', 7);
    let answer = Via::Session(open(&mut a, &own).unwrap().session);
    assert!(pass(&mut a, &mut b, answer).newly_current);
}

#[test]
fn recorded_inits_do_not_displace_a_candidate_before_it_can_be_proven() {
    let mut b = start('b', 9);
    let recorded: Vec<_> = (1..=5).map(|run| init(&mut start('a', run))).collect();
    assert!(recorded.iter().all(|packet| open(&mut b, packet).is_ok()));
    let mut a = start('a', 6);
    let session = pass(&mut a, &mut b, Via::Init).session;

    // The first two are gone; all candidates are young.
    let soon = START + Duration::from_millis(2_999);
    assert_eq!(open_at(soon, &mut b, &recorded[0]), Err(Rejected::Limit));
    assert_eq!(open_at(soon, &mut b, &recorded[1]), Err(Rejected::Limit));
    assert_eq!(open_at(soon, &mut b, &recorded[4]), Err(Rejected::Replay), "its candidate lives");
    // A run that was never seen gets in, and so does a seen one in due time: it may be alive.
    assert!(open_at(soon, &mut b, &init(&mut start('a', 7))).is_ok());
    assert!(open_at(START + Duration::from_secs(3), &mut b, &recorded[0]).is_ok());

    pass(&mut b, &mut a, Via::Session(session));
    let via = current(&a);
    assert!(pass(&mut a, &mut b, via).newly_current);
}

#[test]
fn two_proven_sessions_are_kept_and_the_silent_one_goes() {
    let mut b = start('b', 9);
    let mut runs: Vec<_> = (1..=3).map(|run| start('a', run)).collect();
    let sessions: Vec<_> = runs[..2].iter_mut().map(|a| meet(a, &mut b)).collect();
    // The first run goes on for longer than the second.
    let later = seal(&mut runs[0], Via::Session(sessions[0].0), b"");
    open_at(START + Duration::from_secs(1), &mut b, &later).unwrap();
    let at_b = pass(&mut runs[2], &mut b, Via::Init).session;
    let at_a = pass(&mut b, &mut runs[2], Via::Session(at_b)).session;
    assert!(b.sessions_live(&[sessions[0].1, sessions[1].1, at_b]));
    let proof = pass(&mut runs[2], &mut b, Via::Session(at_a));
    assert!(proof.newly_current && proof.indices_changed);
    assert!(b.sessions_live(&[sessions[0].1, at_b]));
    assert_eq!(b.kind(Via::Session(sessions[1].1)), None);
}

impl Sessions {
    fn sessions_live(&self, ids: &[SessionId]) -> bool {
        ids.iter().all(|id| self.kind(Via::Session(*id)).is_some())
    }
}

#[test]
fn a_session_that_is_proven_late_does_not_displace_a_newer_one() {
    let (mut old, mut new, mut b) = (start('a', 1), start('a', 2), start('b', 3));
    let at_b = pass(&mut old, &mut b, Via::Init).session;
    let at_old = pass(&mut b, &mut old, Via::Session(at_b)).session;
    let held_back = seal(&mut old, Via::Session(at_old), b"");
    let (_, current) = meet(&mut new, &mut b);
    let opened = open(&mut b, &held_back).unwrap();
    assert!(opened.bound && !opened.newly_current);
    assert_eq!(b.current(), Some(current));
}

#[test]
fn message_1_is_used_until_it_is_answered_and_then_never_again() {
    let (mut a, mut b) = (start('a', 1), start('b', 2));
    let mut twin = start('b', 3);
    let first = init(&mut a);
    let at_b = open(&mut b, &first).unwrap().session;
    let at_twin = open(&mut twin, &first).unwrap().session;
    assert_eq!(init(&mut a)[layout::init::NOISE], first[layout::init::NOISE]);
    let answer = seal(&mut b, Via::Session(at_b), b"");
    open(&mut a, &answer).unwrap();
    // Who answers second is asked anew.
    let second = seal(&mut twin, Via::Session(at_twin), b"");
    assert_eq!(open(&mut a, &second), Err(Rejected::Replay));
    let next = init(&mut a);
    assert_ne!(next[layout::init::NOISE], first[layout::init::NOISE]);
    assert_ne!(next[layout::init::OWN_INDEX], first[layout::init::OWN_INDEX]);
    let at_twin = open(&mut twin, &next).unwrap().session;
    pass(&mut twin, &mut a, Via::Session(at_twin));
    // What answered an earlier run answers no other.
    let mut a = start('a', 4);
    init(&mut a);
    assert_eq!(open(&mut a, &answer), Err(Rejected::Index));
}

#[test]
fn a_false_message_2_leaves_message_1_as_it_was() {
    let (mut a, mut b) = (start('a', 1), start('b', 2));
    let at_b = pass(&mut a, &mut b, Via::Init).session;
    let reply = seal(&mut b, Via::Session(at_b), b"");
    for at in layout::reply::NOISE {
        // Whoever knows the pair's secret, but not this handshake, can write a MAC.
        let mut forged = reply.clone();
        forged[at] ^= 0x10;
        let mac = b.pair.outward.reply_mac(&forged[..layout::reply::MAC.start], 0);
        layout::write(&mut forged, layout::reply::MAC, &mac).unwrap();
        assert_eq!(open(&mut a, &forged), Err(Rejected::Aead));
    }
    assert!(open(&mut a, &reply).unwrap().newly_current);
}

#[test]
fn numbers_beyond_32_bits_are_known_from_the_first_packet_on() {
    let (mut a, mut b) = (start('a', 1), start('b', 2));
    a.set_next_number((1 << 32) - 1);
    b.set_next_number((5 << 32) + 7);
    let before = init(&mut a);
    let opened = pass(&mut a, &mut b, Via::Init);
    assert_eq!(opened.number, PacketNumber(1 << 32));
    let reply = pass(&mut b, &mut a, Via::Session(opened.session));
    assert_eq!(reply.number, PacketNumber((5 << 32) + 7));
    assert_eq!(pass(&mut a, &mut b, Via::Session(reply.session)).number, PacketNumber((1 << 32) + 1));
    assert_eq!(pass(&mut b, &mut a, Via::Session(opened.session)).number, PacketNumber((5 << 32) + 8));
    assert_eq!(open(&mut b, &before).unwrap().number, PacketNumber((1 << 32) - 1));
    // From one half to the next, while packets flow.
    for next in [(1 << 32) + (1 << 30), (1 << 32) + (3 << 30), (1 << 33) - 1, 1 << 33] {
        a.set_next_number(next);
        assert_eq!(pass(&mut a, &mut b, Via::Session(reply.session)).number, PacketNumber(next));
    }
    a.set_next_number((1 << 62) - 1);
    assert!(a.seal(Via::Init, &mut [0; 200]).is_ok());
    assert_eq!(a.seal(Via::Init, &mut [0; 200]), Err(SealError::Exhausted));
    assert_eq!(a.seal(Via::Session(reply.session), &mut [0; 200]), Err(SealError::Exhausted));
}

#[test]
fn good_sessions_outlive_a_flood_of_bad_packets() {
    let (mut a, mut b) = (start('a', 1), start('b', 2));
    let (at_a, at_b) = meet(&mut a, &mut b);
    let good: Vec<_> = (0..3).map(|_| seal(&mut a, Via::Session(at_a), b"good")).collect();
    let again = init(&mut a);
    let mut random = SplitMix(1);
    for (_, _, packet) in one_of_each() {
        for _ in 0..2_000 {
            let mut at = [0; 3];
            random.fill(&mut at);
            let mut bad = [&packet, &good[0], &again][usize::from(at[2] % 3)].clone();
            let at = usize::from(u16::from_be_bytes([at[0], at[1]])) % bad.len();
            let was = bad[at];
            random.fill(&mut bad[at..]);
            bad[at] = was ^ (bad[at] | 1);
            assert!(open(&mut b, &bad).is_err());
        }
    }
    assert!(good.iter().all(|packet| open(&mut b, packet).is_ok()));
    pass(&mut b, &mut a, Via::Session(at_b));
}

#[test]
fn a_run_without_a_name_is_refused() {
    let (mut a, mut b) = (start('a', 0), start('b', 2));
    assert_eq!(open(&mut b, &init(&mut a)), Err(Rejected::Malformed));
    let answer = Via::Session(pass(&mut b, &mut a, Via::Init).session);
    assert_eq!(open(&mut b, &seal(&mut a, answer, b"")), Err(Rejected::Malformed));
}

#[test]
fn entropy_that_repeats_itself_gives_no_index_twice() {
    struct Constant;
    impl Entropy for Constant {
        fn fill(&mut self, bytes: &mut [u8]) {
            bytes.fill(1);
        }
    }
    let mut b = node('b', 9, true, None, Box::new(Constant));
    for run in 1..=4 {
        pass(&mut start('a', run), &mut b, Via::Init);
    }
    let mut indices: Vec<_> = b.indices().collect();
    indices.dedup();
    assert_eq!(indices.len(), 4);
}

/// Gives these bytes and then no more.
struct Given(Vec<u8>);

impl Entropy for Given {
    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0.drain(..bytes.len()).collect::<Vec<_>>());
    }
}

/// docs/sessions.json is computed from the text of docs/sessions.md by a program in another language.
#[test]
fn packets_are_those_of_the_document() {
    let file: serde_json::Value = serde_json::from_str(include_str!("../../../../docs/sessions.json")).unwrap();
    let hex = |value: &serde_json::Value| crate::known_answers::hex(value.as_str().unwrap());
    let exchanges = file["exchanges"].as_array().unwrap();
    for exchange in exchanges {
        let ids = [0, 1].map(|i| Identity::generate(&mut Given(hex(&exchange["secrets"][i]))));
        let psk = hex(&exchange["psk"]).try_into().unwrap();
        let mut ends = [0, 1].map(|i| {
            let run = RunId(exchange["runs"][i].as_u64().unwrap());
            let entropy = Box::new(Given(hex(&exchange["entropy"][i])));
            let aes = exchange["aes"][i].as_bool().unwrap();
            let mut end = Sessions::new(&ids[i], ids[1 - i].public(), Some(psk), run, aes, entropy);
            end.set_next_number(exchange["numbers"][i].as_str().unwrap().parse().unwrap());
            end
        });
        let mut vias = [Via::Init; 2];
        for (i, packet) in exchange["packets"].as_array().unwrap().iter().enumerate() {
            let (from, to) = (i % 2, 1 - i % 2);
            let sealed = seal(&mut ends[from], vias[from], &hex(&packet["payload"]));
            assert_eq!(sealed, hex(&packet["hex"]), "packet {i}");
            vias[to] = Via::Session(open(&mut ends[to], &sealed).unwrap().session);
        }
    }
    assert_eq!(exchanges.len(), 2);
}
