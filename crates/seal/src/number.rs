//! Packet numbers: 64 bits long, of which a packet carries the low 32.

/// No number is as large as this (RFC 9000, section 12.3).
pub(crate) const LIMIT: u64 = 1 << 62;

/// The number with these low bits that is next to what is expected after `largest` (RFC 9000, appendix A.3).
/// `None` beyond the limit.
pub(crate) fn expand(low: u32, largest: u64) -> Option<u64> {
    const WINDOW: u64 = 1 << 32;
    let expected = largest + 1;
    let candidate = expected & !(WINDOW - 1) | u64::from(low);
    let number = if candidate + WINDOW / 2 <= expected && candidate < LIMIT - WINDOW {
        candidate + WINDOW
    } else if candidate > expected + WINDOW / 2 && candidate >= WINDOW {
        candidate - WINDOW
    } else {
        candidate
    };
    Some(number).filter(|number| *number < LIMIT)
}

/// The number with these halves. `None` beyond the limit.
pub(crate) fn join(high: u32, low: u32) -> Option<u64> {
    Some(u64::from(high) << 32 | u64::from(low)).filter(|number| *number < LIMIT)
}

/// The high 32 bits.
pub(crate) fn high(number: u64) -> u32 {
    (number >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_within_half_a_window_come_back() {
        let far = (1 << 31) - 1;
        for largest in [0, 5, (1 << 32) - 1, 1 << 32, (7 << 32) + 12, LIMIT - 2] {
            for number in
                [largest.saturating_sub(far - 1), largest.saturating_sub(1), largest, largest + 1, largest + far]
            {
                if number < LIMIT {
                    assert_eq!(expand(number as u32, largest), Some(number), "after {largest}");
                }
            }
        }
    }

    #[test]
    fn no_number_reaches_the_limit() {
        assert_eq!(join(high(LIMIT - 1), u32::MAX), Some(LIMIT - 1));
        assert_eq!(join(high(LIMIT), 0), None);
        assert_eq!(expand(0, LIMIT - 1), None);
        assert_eq!(expand(u32::MAX, LIMIT - 1), Some(LIMIT - 1));
    }
}
