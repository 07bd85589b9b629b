//! Functions fit a screen.

use std::path::Path;

use super::Finding;
use super::source::tokens;

const LONGEST: usize = 80;

/// Refuses functions of more than 80 lines, from `fn` to the closing brace; `code` is blanked.
pub fn check(path: &Path, code: &str) -> Vec<Finding> {
    let tokens: Vec<_> = tokens(code).collect();
    let mut findings = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.text == "fn") {
        // A pointer type such as `fn(u64)` has no name.
        let Some(name) = tokens.get(at + 1).filter(|next| next.is_word()) else { continue };
        let Some(last) = last_line(tokens[at..].iter().map(|t| (t.text, t.line))) else { continue };
        let lines = last - token.line + 1;
        if lines > LONGEST {
            let message = format!("{} has {lines} lines, over {LONGEST}: split it", name.text);
            findings.push(Finding::new(path, token.line, message));
        }
    }
    findings
}

/// The line of the brace that closes the body; none if the function has no body.
fn last_line<'a>(tokens: impl Iterator<Item = (&'a str, usize)>) -> Option<usize> {
    let (mut braces, mut brackets) = (0u32, 0u32);
    for (text, line) in tokens {
        match text {
            "(" | "[" => brackets += 1,
            ")" | "]" => brackets = brackets.saturating_sub(1),
            ";" if braces == 0 && brackets == 0 => return None,
            "{" => braces += 1,
            "}" if braces <= 1 => return Some(line),
            "}" => braces -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::source::blank;
    use super::*;

    fn function(lines: usize) -> String {
        format!(
            "struct A;\nfn long(a: [u8; 2]) -> u8 {{\n{}}}\nfn next() {{}}\n",
            "    { a(\"}\"); }\n".repeat(lines - 2)
        )
    }

    #[test]
    fn a_screen_is_enough() {
        assert_eq!(check(Path::new("a.rs"), &blank(&function(LONGEST))), []);
    }

    #[test]
    fn more_is_too_long() {
        let findings = check(Path::new("a.rs"), &blank(&function(LONGEST + 1)));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 2);
        assert!(findings[0].message.starts_with("long has 81 lines"));
    }

    #[test]
    fn declarations_and_pointers_have_no_body() {
        let text = format!("trait A {{ fn a(&self); }}\nstruct B {{ b: fn(u8) -> u8 }}\n{}", "\n".repeat(100));
        assert_eq!(check(Path::new("a.rs"), &blank(&text)), []);
    }
}
