//! What the elements of a path want to know of an IP packet, and what they may change in it.

use stayfast_sim::{Datagram, Ecn};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// An IP packet as the elements see it; none if it is no IP packet.
pub(crate) fn datagram(bytes: Vec<u8>) -> Result<Datagram, Vec<u8>> {
    let Some((from, to, ecn)) = read(&bytes) else { return Err(bytes) };
    let mut datagram = Datagram::packet(from, to, bytes);
    datagram.ecn = ecn;
    Ok(datagram)
}

/// Writes what the path has made of the ECN bits into the header.
pub(crate) fn write_ecn(datagram: &mut Datagram) {
    let ecn = datagram.ecn.bits();
    let bytes = &mut datagram.bytes;
    match bytes.first().map(|byte| byte >> 4) {
        Some(4) if bytes.len() >= 20 && bytes[1] & 0b11 != ecn => {
            let before = u16::from_be_bytes([bytes[0], bytes[1]]);
            bytes[1] = bytes[1] & !0b11 | ecn;
            let after = u16::from_be_bytes([bytes[0], bytes[1]]);
            let sum = checksum(u16::from_be_bytes([bytes[10], bytes[11]]), before, after);
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Some(6) if bytes.len() >= 40 => bytes[1] = bytes[1] & !(0b11 << 4) | ecn << 4,
        _ => {}
    }
}

fn read(bytes: &[u8]) -> Option<(SocketAddr, SocketAddr, Ecn)> {
    let word = |at: usize| bytes.get(at..at + 2).map(|w| u16::from_be_bytes([w[0], w[1]]));
    let v4 = |at: usize| Some(IpAddr::from(Ipv4Addr::from(*bytes.get(at..)?.first_chunk::<4>()?)));
    let v6 = |at: usize| Some(IpAddr::from(Ipv6Addr::from(*bytes.get(at..)?.first_chunk::<16>()?)));
    let (from, to, ecn, header) = match bytes.first()? >> 4 {
        4 => (v4(12)?, v4(16)?, *bytes.get(1)?, usize::from(bytes[0] & 0xf) * 4),
        6 => (v6(8)?, v6(24)?, *bytes.get(1)? >> 4, 40),
        _ => return None,
    };
    // The ports of TCP and UDP, for disciplines that tell flows apart; of others whatever stands there.
    let port = |at: usize| word(header + at).unwrap_or(0);
    Some((SocketAddr::new(from, port(0)), SocketAddr::new(to, port(2)), Ecn::from_bits(ecn)))
}

/// RFC 1624, 3: `HC' = ~(~HC + ~m + m')`.
fn checksum(sum: u16, before: u16, after: u16) -> u16 {
    let mut new = u32::from(!sum) + u32::from(!before) + u32::from(after);
    while new > 0xffff {
        new = (new & 0xffff) + (new >> 16);
    }
    !(new as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From RFC 1071: the sum of all words with the checksum is all ones.
    fn is_sound(header: &[u8]) -> bool {
        let mut sum: u32 = header.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum == 0xffff
    }

    const V4: [u8; 28] = [
        0x45, 0x02, 0, 28, 0x1c, 0x46, 0x40, 0, 64, 17, 0x0a, 0x87, 10, 0, 0, 1, 10, 0, 0, 2, 0x12, 0x67, 0x11, 0x51,
        0, 8, 0, 0,
    ];

    #[test]
    fn a_mark_keeps_the_checksum_right() {
        assert!(is_sound(&V4[..20]));
        let mut datagram = datagram(V4.to_vec()).unwrap();
        assert_eq!(datagram.to, "10.0.0.2:4433".parse().unwrap());
        assert_eq!((datagram.ecn, datagram.packet_size()), (Ecn::Ect0, 28));
        for ecn in [Ecn::Ce, Ecn::NotEct, Ecn::Ect1] {
            datagram.ecn = ecn;
            write_ecn(&mut datagram);
            assert_eq!(datagram.bytes[1], ecn.bits());
            assert!(is_sound(&datagram.bytes[..20]), "{ecn:?}");
        }
    }

    #[test]
    fn the_bits_of_ipv6_lie_across_two_bytes() {
        let mut bytes = vec![0; 48];
        (bytes[0], bytes[1]) = (0x6b, 0xef);
        let mut datagram = datagram(bytes).unwrap();
        assert_eq!(datagram.ecn, Ecn::Ect0);
        datagram.ecn = Ecn::Ce;
        write_ecn(&mut datagram);
        assert_eq!(datagram.bytes[..2], [0x6b, 0xff]);
    }

    #[test]
    fn anything_else_is_given_back() {
        for bytes in [vec![], vec![0x45; 19], vec![0x60; 39], vec![0x11; 100]] {
            assert_eq!(datagram(bytes.clone()), Err(bytes));
        }
    }
}
