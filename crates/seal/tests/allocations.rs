//! Packets of an established session are sealed and opened without the heap.

use allocation_counter::measure;
use stayfast_frame::{Kind, Seal, SessionId, Via};
use stayfast_seal::{Identity, Sessions};
use stayfast_testkit::SplitMix;
use stayfast_units::{RunId, Time};

fn ends(aes: bool) -> [Sessions; 2] {
    let ids = [1, 2].map(|seed| Identity::generate(&mut SplitMix(seed)));
    [0, 1].map(|i| {
        let entropy = Box::new(SplitMix(3 + i as u64));
        Sessions::new(&ids[i], ids[1 - i].public(), None, RunId(i as u64 + 1), aes, entropy)
    })
}

fn pass(from: &mut Sessions, to: &mut Sessions, via: Via, packet: &mut [u8]) -> SessionId {
    from.seal(via, packet).unwrap();
    to.open(Time::ZERO, packet).unwrap().session
}

#[test]
fn data_packets_take_nothing_from_the_heap() {
    for aes in [true, false] {
        let [mut a, mut b] = ends(aes);
        let mut packet = [0; 1200];
        let at_b = pass(&mut a, &mut b, Via::Init, &mut packet);
        let at_a = pass(&mut b, &mut a, Via::Session(at_b), &mut packet);
        let allocations = measure(|| {
            for _ in 0..5_000 {
                pass(&mut a, &mut b, Via::Session(at_a), &mut packet);
                pass(&mut b, &mut a, Via::Session(at_b), &mut packet);
                assert!(b.seal(Via::Session(at_a), &mut packet).is_err() || at_a == at_b);
                assert!(a.open(Time::ZERO, &mut [0x81; 60]).is_err());
            }
        });
        assert_eq!(b.kind(Via::Session(at_b)), Some(Kind::Data));
        assert_eq!(allocations.count_total, 0);
    }
}

#[test]
fn more_init_packets_under_a_known_message_take_nothing_either() {
    let [mut a, mut b] = ends(true);
    let mut packet = [0; 1200];
    let at_b = pass(&mut a, &mut b, Via::Init, &mut packet);
    let again = measure(|| {
        for _ in 0..1_000 {
            pass(&mut a, &mut b, Via::Init, &mut packet);
        }
    });
    assert_eq!(again.count_total, 0);
    let answered = measure(|| {
        pass(&mut b, &mut a, Via::Session(at_b), &mut packet);
    });
    assert!(answered.count_total > 0, "the counter counts");
}
