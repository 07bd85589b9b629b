//! Replays docs/vectors.json. docs/check_vectors.py reads the same file with a decoder of its own.

use serde_json::{Value, json};
use stayfast_frame::{
    DecodeError, Frame, Header, Kind, Part, Records, Refusal, StoredKind, TAG_LEN, Writer, decode, layout,
};

fn vectors(part: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../../../docs/vectors.json")).expect("JSON");
    all[part].as_array().expect("a list").clone()
}

fn bytes(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().expect("hex").as_bytes();
    hex.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).expect("hex")).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn id(number: u64) -> String {
    format!("{number:016x}")
}

fn error(error: DecodeError) -> &'static str {
    match error {
        DecodeError::Truncated => "Truncated",
        DecodeError::Malformed => "Malformed",
        DecodeError::Limit => "Limit",
        DecodeError::Unsupported => "Unsupported",
        DecodeError::Unknown(_) => "Unknown",
        DecodeError::Version(_) => "Version",
    }
}

fn header(packet: &[u8], header: Header) -> Value {
    let field = |field| hex(&packet[field]);
    let mut told = match header {
        Header::Init { tag, own_index } => json!({
            "kind": "INIT", "tag": hex(&tag), "own_index": own_index,
            "noise": field(layout::init::NOISE), "mac": field(layout::init::MAC),
        }),
        Header::Reply { index, own_index } => json!({
            "kind": "REPLY", "index": index, "own_index": own_index,
            "noise": field(layout::reply::NOISE), "mac": field(layout::reply::MAC),
        }),
        Header::Data { index } => json!({ "kind": "DATA", "index": index }),
    };
    let kind = header.kind();
    told["aes"] = layout::has_aes(packet[0]).into();
    told["number"] = field(layout::number(kind)).into();
    told["payload"] = field(kind.header_len()..packet.len() - TAG_LEN).into();
    told
}

fn records(records: &Records<'_>) -> Value {
    let bodies: Vec<_> = records.iter().map(|part| hex(part.bytes)).collect();
    let mut told = json!({ "frame": "RECORDS", "alias": records.alias, "first": records.first.0, "bodies": bodies });
    if records.offset > 0 {
        told["offset"] = records.offset.into();
    }
    let last = records.iter().last().unwrap();
    if (last.offset as usize + last.bytes.len()) < last.total as usize {
        told["cut"] = last.total.into();
    }
    told
}

fn frame(frame: &Frame<'_>) -> Value {
    match *frame {
        Frame::Padding(len) => json!({ "frame": "PADDING", "len": len }),
        Frame::Ping => json!({ "frame": "PING" }),
        Frame::Ack(ack) => {
            let range = |r: stayfast_frame::AckRange| json!([r.first.0, r.last.0, r.received.as_micros()]);
            let ranges: Vec<_> = ack.ranges().map(range).collect();
            let mut told = json!({ "frame": "ACK", "delay_us": ack.delay.as_micros() as u64, "ranges": ranges });
            if let Some(ecn) = ack.ecn {
                told["ecn"] = json!([ecn.ect0, ecn.ect1, ecn.ce]);
            }
            told
        }
        Frame::AckFrequency { sequence, every, max_delay } => json!({
            "frame": "ACK_FREQUENCY", "sequence": sequence, "every": every, "max_delay_us": max_delay.as_micros() as u64,
        }),
        Frame::ImmediateAck => json!({ "frame": "IMMEDIATE_ACK" }),
        Frame::Records(told) => records(&told),
        Frame::Part(part) => json!({
            "frame": "PART", "alias": part.alias, "number": part.number.0,
            "total": part.total, "offset": part.offset, "bytes": hex(part.bytes),
        }),
        Frame::Open { alias, store, name } => {
            json!({ "frame": "OPEN", "alias": alias, "store": id(store.0), "name": name })
        }
        Frame::Origin { alias, first, lineage, parent } => json!({
            "frame": "ORIGIN", "alias": alias, "first": first.0, "lineage": id(lineage.0), "parent": id(parent.0),
        }),
        Frame::Gap { alias, first, count } => {
            json!({ "frame": "GAP", "alias": alias, "first": first.0, "count": count })
        }
        Frame::Expired { alias, first, count } => {
            json!({ "frame": "EXPIRED", "alias": alias, "first": first.0, "count": count })
        }
        Frame::Heard { alias, next } => json!({ "frame": "HEARD", "alias": alias, "next": next.0 }),
        Frame::Stored(stored) => json!({
            "frame": "STORED", "alias": stored.alias, "next": stored.next.0,
            "lineage": id(stored.lineage.0), "level": stored.level,
            "kind": match stored.kind { StoredKind::Record => "record", StoredKind::Tombstone => "tombstone" },
        }),
        Frame::Query { nonce, alias, trimmed } => {
            json!({ "frame": "QUERY", "nonce": nonce, "alias": alias, "trimmed": trimmed.0 })
        }
        Frame::Answer { nonce, alias, next, lineage } => {
            json!({ "frame": "ANSWER", "nonce": nonce, "alias": alias, "next": next.0, "lineage": id(lineage.0) })
        }
        Frame::Credit { link, alias, from, bytes } => {
            json!({ "frame": "CREDIT", "link": link, "alias": alias, "from": from.0, "bytes": bytes })
        }
        Frame::Blocked { alias, number, bytes } => {
            json!({ "frame": "BLOCKED", "alias": alias, "number": number.0, "bytes": bytes })
        }
        Frame::Refused { alias, number, reason } => json!({
            "frame": "REFUSED", "alias": alias, "number": number.0,
            "reason": match reason {
                Refusal::Unauthorized => "unauthorized",
                Refusal::TooLarge => "too large",
                Refusal::TooManyStreams => "too many streams",
                Refusal::Rejected => "rejected",
            },
        }),
        Frame::Fenced { alias, number, theirs, yours } => json!({
            "frame": "FENCED", "alias": alias, "number": number.0, "theirs": id(theirs.0), "yours": id(yours.0),
        }),
        Frame::PathChallenge(data) => json!({ "frame": "PATH_CHALLENGE", "data": hex(&data) }),
        Frame::PathResponse(data) => json!({ "frame": "PATH_RESPONSE", "data": hex(&data) }),
        Frame::Key(message) => json!({ "frame": "KEY", "message": hex(message) }),
        Frame::Skipped { ty, len } => json!({ "frame": "SKIPPED", "type": ty, "len": len }),
    }
}

#[test]
fn headers() {
    for vector in vectors("headers") {
        let packet = bytes(&vector["hex"]);
        let told = match Header::parse(&packet) {
            Ok(parsed) => header(&packet, parsed),
            Err(refused) => json!({ "error": error(refused) }),
        };
        let mut expected = vector.clone();
        expected.as_object_mut().unwrap().retain(|key, _| key != "name" && key != "hex");
        assert_eq!(told, expected, "{}", vector["name"]);
        if let Ok(kind) = layout::kind(packet.first().copied().unwrap_or(0)) {
            assert_eq!(layout::first_byte(kind, layout::has_aes(packet[0])), packet[0]);
        }
    }
    assert_eq!([Kind::Init, Kind::Reply, Kind::Data].map(Kind::overhead), [141, 101, 25]);
}

#[test]
fn payloads_are_read_as_the_vectors_say() {
    for vector in vectors("payloads") {
        let payload = bytes(&vector["hex"]);
        let (mut frames, mut refused) = (Vec::new(), Value::Null);
        for told in decode(&payload) {
            match told {
                Ok(good) => frames.push(frame(&good)),
                Err(bad) => refused = error(bad).into(),
            }
        }
        assert_eq!(json!(frames), vector["frames"], "{}", vector["name"]);
        assert_eq!(&refused, vector.get("error").unwrap_or(&Value::Null), "{}", vector["name"]);
    }
}

#[test]
fn frames_are_written_as_the_vectors_say() {
    for vector in vectors("payloads").iter().filter(|vector| vector.get("error").is_none()) {
        let payload = bytes(&vector["hex"]);
        let mut again = vec![0; payload.len()];
        let mut writer = Writer::new(&mut again);
        for frame in decode(&payload) {
            writer.put(&frame.unwrap()).unwrap();
        }
        let len = writer.written();
        let expected = vector.get("rewritten").unwrap_or(&vector["hex"]);
        assert_eq!(&json!(hex(&again[..len])), expected, "{}", vector["name"]);
    }
}

/// A payload that is cut anywhere shows the whole frames before the cut, and then an error, unless the cut is
/// between two frames, in padding, or in a record: of that the beginning is seen.
#[test]
fn a_cut_payload_never_shows_another_frame() {
    for vector in vectors("payloads").iter().filter(|vector| vector.get("error").is_none()) {
        let payload = bytes(&vector["hex"]);
        let whole: Vec<_> = decode(&payload).map(Result::unwrap).collect();
        for cut in 0..payload.len() {
            let frames: Vec<_> = decode(&payload[..cut]).collect();
            for (place, told) in frames.iter().enumerate() {
                match told {
                    Ok(Frame::Padding(len)) => assert!(matches!(whole[place], Frame::Padding(all) if all >= *len)),
                    Ok(Frame::Records(records)) => {
                        let Frame::Records(all) = whole[place] else { panic!("{told:?}") };
                        for (part, all) in records.iter().zip(all.iter()) {
                            assert!(
                                all.bytes.starts_with(part.bytes)
                                    && (part.bytes == all.bytes || place + 1 == frames.len())
                            );
                            assert_eq!(Part { bytes: all.bytes, ..part }, all);
                        }
                        assert!(records.iter().count() <= all.iter().count());
                    }
                    Ok(good) => assert_eq!(good, &whole[place]),
                    Err(bad) => assert_eq!((*bad, place), (DecodeError::Truncated, frames.len() - 1)),
                }
            }
        }
    }
}

/// Every type byte is a frame, skipped, reserved, or unknown: no other answer, and none by accident.
#[test]
fn every_type_byte_has_one_meaning() {
    let known = [0, 1, 2, 3, 4, 5, 0x12, 0x18, 0x19, 0x1a, 0x1b, 0x30, 0x31, 0x32];
    for ty in 0..=u8::MAX {
        let mut payload = [0; 64];
        payload[0] = ty;
        let told = decode(&payload).next().unwrap();
        match ty {
            0x13 => assert_eq!(told, Err(DecodeError::Unsupported)),
            0x40..=0x7f => assert_eq!(told, Ok(Frame::Skipped { ty, len: 0 })),
            ty if known.contains(&ty) || (0x20..0x28).contains(&ty) || ty >= 0x80 => {
                assert!(!matches!(told, Err(DecodeError::Unknown(_))), "{ty:#04x}");
            }
            _ => assert_eq!(told, Err(DecodeError::Unknown(ty))),
        }
    }
}

/// Which frames may travel in an INIT, and which ask for an acknowledgement. Both lists are in docs/wire.md.
#[test]
fn what_travels_where() {
    const UNBOUND: [&str; 10] =
        ["PADDING", "PING", "IMMEDIATE_ACK", "RECORDS", "PART", "OPEN", "ORIGIN", "GAP", "EXPIRED", "QUERY"];
    for vector in vectors("payloads") {
        let payload = bytes(&vector["hex"]);
        for good in decode(&payload).map_while(Result::ok) {
            let told = frame(&good);
            let name = told["frame"].as_str().unwrap();
            assert_eq!(good.allowed_unbound(), UNBOUND.contains(&name), "{name}");
            assert_eq!(good.is_ack_eliciting(), !["PADDING", "ACK", "HEARD"].contains(&name), "{name}");
        }
    }
}
