//! A crate uses only crates on lower floors.

use super::Finding;
use crate::metadata::Crate;

/// Refuses edges that do not go down, and edges to what stands beside the building.
///
/// Development dependencies may go anywhere inside it: a test of a low crate may want a network to play with.
pub fn check(crates: &[Crate]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for from in crates {
        for edge in &from.uses {
            let Some(to) = crates.iter().find(|c| c.name == edge.name) else { continue };
            let complaint = match (from.floor, to.floor) {
                (Some(_), None) => "which stands beside the floors: nothing on a floor may use it".to_owned(),
                (Some(own), Some(other)) if other >= own && !edge.dev => {
                    format!("on floor {other}, but stands on floor {own} itself: dependencies go down")
                }
                _ => continue,
            };
            let message = format!("{} uses {}, {complaint}", from.name, to.name);
            findings.push(Finding::new(from.dir.join("Cargo.toml"), 0, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    fn building(edge: (&str, bool)) -> Vec<Finding> {
        check(&[
            example("units", Some(0), &[]),
            example("frame", Some(1), &[("units", false)]),
            example("ranges", Some(1), &[("units", false), edge]),
            example("link", Some(2), &[("frame", false)]),
            example("tests", None, &[("link", false), ("models", false)]),
            example("models", None, &[("units", false)]),
        ])
    }

    #[test]
    fn down_is_fine() {
        assert_eq!(building(("units", false)), []);
    }

    #[test]
    fn tests_may_look_up() {
        assert_eq!(building(("link", true)), []);
    }

    #[test]
    fn up_and_sideways_are_refused() {
        for to in ["link", "frame"] {
            let findings = building((to, false));
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert!(findings[0].message.contains(to));
        }
    }

    #[test]
    fn nothing_uses_what_stands_beside() {
        assert_eq!(building(("tests", false)).len(), 1);
        assert_eq!(building(("tests", true)).len(), 1);
    }
}
