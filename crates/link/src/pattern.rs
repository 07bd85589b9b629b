/// Does the stream `name` match `pattern`? A `*` stands for any bytes, also none; all else for itself.
///
/// ```
/// assert!(stayfast_link::matches("orders/*", "orders/berlin"));
/// assert!(!stayfast_link::matches("orders/*", "readings"));
/// ```
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "a/b", true),
            ("", "", true),
            ("", "a", false),
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("a*c", "abbc", true),
            ("a*c", "ac", true),
            ("a*c", "a", false),
            ("a*a", "a", false),
            ("*a*b*", "xaybz", true),
            ("*a*b*", "xbya", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern:?} and {name:?}");
        }
    }
}
