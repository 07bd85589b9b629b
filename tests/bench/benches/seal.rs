//! Full DATA packets: sealed and opened, with both ciphers.
#![forbid(unsafe_code)]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use stayfast_frame::{Kind, Seal, SessionId, Via};
use stayfast_net::{OsEntropy, generate};
use stayfast_seal::Sessions;
use stayfast_units::{RunId, Time};

const DATAGRAM: usize = 1_200;

/// Two ends with a session in which both send DATA packets.
fn pair(aes: bool) -> (Sessions, SessionId, Sessions) {
    let (a, b) = (generate().expect("entropy"), generate().expect("entropy"));
    let mut at_a = Sessions::new(&a, b.public(), None, RunId(1), aes, Box::new(OsEntropy));
    let mut at_b = Sessions::new(&b, a.public(), None, RunId(2), aes, Box::new(OsEntropy));
    let mut init = vec![0; Kind::Init.overhead()];
    at_a.seal(Via::Init, &mut init).expect("an INIT can always be sent");
    let session = at_b.open(Time::ZERO, &mut init).expect("it is authentic").session;
    let mut reply = vec![0; Kind::Reply.overhead()];
    at_b.seal(Via::Session(session), &mut reply).expect("the session is there");
    let session = at_a.open(Time::ZERO, &mut reply).expect("it is authentic").session;
    assert_eq!(at_a.kind(Via::Session(session)), Some(Kind::Data));
    (at_a, session, at_b)
}

fn sealed(from: &mut Sessions, session: SessionId) -> [u8; DATAGRAM] {
    let mut packet = [7; DATAGRAM];
    from.seal(Via::Session(session), &mut packet).expect("the session is there");
    packet
}

fn benches(c: &mut Criterion) {
    for (name, aes) in [("AES-256-GCM", true), ("ChaCha20-Poly1305", false)] {
        let (mut from, session, mut to) = pair(aes);
        let mut packet = [7; DATAGRAM];
        let mut group = c.benchmark_group(format!("seal/{name}"));
        group.throughput(Throughput::Bytes(DATAGRAM as u64));
        group.bench_function("seal", |b| {
            b.iter(|| from.seal(Via::Session(session), &mut packet).expect("the session is there"));
        });
        group.bench_function("open", |b| {
            // A packet can be opened once only, and in the order in which they were sealed.
            let open = |packet: &mut [u8; DATAGRAM]| to.open(Time::ZERO, packet).expect("it is new and authentic");
            b.iter_batched_ref(|| sealed(&mut from, session), open, BatchSize::SmallInput);
        });
        group.finish();
    }
}

criterion_group!(seal, benches);
criterion_main!(seal);
