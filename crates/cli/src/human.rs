//! Numbers as people read and write them.

use std::time::Duration;

/// `12345678` as `12,345,678`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 record`, `2 records`.
pub fn records(n: u64) -> String {
    format!("{} {}", count(n), if n == 1 { "record" } else { "records" })
}

/// Bytes in the unit that keeps the number short: `61 B`, `13.6 MB`.
pub fn bytes(n: u64) -> String {
    let units = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match units.iter().find(|(size, _)| n >= *size) {
        Some((size, unit)) => format!("{}.{} {unit}", n / size, n % size / (size / 10)),
        None => format!("{n} B"),
    }
}

/// A time with two units at most: `4m12s`, `12s`, `1.3s`, `40.1ms`, `250us`.
pub fn duration(time: Duration) -> String {
    let (seconds, micros) = (time.as_secs(), time.as_micros());
    let two = |large: u64, unit: &str, small: u64, name: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{name}"),
    };
    match seconds {
        86_400.. => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
        3_600.. => two(seconds / 3_600, "h", seconds % 3_600 / 60, "m"),
        60.. => two(seconds / 60, "m", seconds % 60, "s"),
        10.. => format!("{seconds}s"),
        1.. => format!("{}.{}s", seconds, time.subsec_millis() / 100),
        0 if micros >= 1_000 => format!("{}.{}ms", micros / 1_000, micros % 1_000 / 100),
        0 => format!("{micros}us"),
    }
}

/// Numbers of records, such as `3 7-9`: the first few, and whether there are more.
pub fn numbers(text: &str) -> String {
    const MOST: usize = 8;
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    match words.len() {
        0..=MOST => words.join(", "),
        _ => format!("{}, ...", words[..MOST].join(", ")),
    }
}

/// Reads a time such as `30s`, `1.5s`, `250ms`, `5m`, `2h`.
///
/// # Errors
/// What would have been understood.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a time such as 30s, 1.5s, 250ms, 5m or 2h".to_string();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let size: f64 = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return Err(expected()),
    };
    let number: f64 = number.parse().map_err(|_| expected())?;
    Duration::try_from_secs_f64(number * size).map_err(|_| expected())
}

/// Reads a size such as `500`, `64kB`, `16MB`, `2GB`.
///
/// # Errors
/// What would have been understood.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let expected = || "expected a size such as 500, 64kB, 16MB or 2GB".to_string();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let size: u64 = match unit {
        "" | "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return Err(expected()),
    };
    number.parse().ok().and_then(|n: u64| n.checked_mul(size)).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_commas() {
        let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")];
        for (n, text) in cases {
            assert_eq!(count(n), text);
        }
        assert_eq!((records(1), records(1_000)), ("1 record".into(), "1,000 records".into()));
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_000), "1.0 kB");
        assert_eq!(bytes(13_678_901), "13.6 MB");
    }

    #[test]
    fn times_have_two_units_at_most() {
        let cases = [
            (252_000_000, "4m12s"),
            (240_000_000, "4m"),
            (12_345_000, "12s"),
            (2_345_000, "2.3s"),
            (40_123, "40.1ms"),
            (250, "250us"),
            (90_061_000_000, "1d1h"),
        ];
        for (micros, text) in cases {
            assert_eq!(duration(Duration::from_micros(micros)), text);
        }
    }

    #[test]
    fn times_are_read_or_refused() {
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("2h"), Ok(Duration::from_secs(7_200)));
        for text in ["", "5", "s", "-1s", "1x", "1.2.3s", "999999999999999999999999d"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_read_or_refused() {
        assert_eq!((parse_bytes("500"), parse_bytes("64kB")), (Ok(500), Ok(64_000)));
        for text in ["", "kB", "1.5MB", "1KB", "99999999999999GB"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }
}
