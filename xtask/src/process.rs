//! Child processes: shown before they run, an error if they fail.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// What a task returns: nothing, or a sentence for a person.
pub type Outcome<T = ()> = Result<T, String>;

/// The top folder of the repository: the parent of this crate's.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository")
}

/// The cargo that runs us, started in the top folder.
pub fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command to its end and passes its exit code on, for scripts.
pub fn run_as(command: &mut Command) -> Outcome<ExitCode> {
    announce(command);
    let status = command.status().map_err(|e| format!("{}: {e}", show(command)))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Runs a command to its end; anything but exit code 0 is an error.
pub fn run(command: &mut Command) -> Outcome {
    announce(command);
    let status = command.status().map_err(|e| format!("{}: {e}", show(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", show(command))) }
}

/// Runs a command and returns what it printed to standard output.
pub fn output(command: &mut Command) -> Outcome<String> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|e| format!("{}: {e}", show(command)))?;
    if !output.status.success() {
        return Err(format!("{}: {}", show(command), output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{}: its output is not UTF-8", show(command)))
}

/// Tests that ran, as the test harness counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
}

impl Counts {
    /// Adds the counts of a line such as `test result: ok. 3 passed; 0 failed; 0 ignored; ...`.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let before = |word: &str| -> u64 {
            let mut words = result.split([' ', ';', '.']).filter(|w| !w.is_empty()).peekable();
            while let Some(count) = words.next() {
                if words.peek() == Some(&word) {
                    return count.parse().unwrap_or(0);
                }
            }
            0
        };
        self.passed += before("passed");
        self.failed += before("failed");
    }
}

/// Runs tests: passes their output on and adds up the results the harness prints.
pub fn run_tests(command: &mut Command, counts: &mut Counts) -> Outcome {
    announce(command);
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|e| format!("{}: {e}", show(command)))?;
    let mut lines = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).map_err(|e| e.to_string())? > 0 {
        std::io::stdout().write_all(&line).map_err(|e| e.to_string())?;
        counts.add(&String::from_utf8_lossy(&line));
        line.clear();
    }
    let status = child.wait().map_err(|e| e.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", show(command))) }
}

fn announce(command: &Command) {
    // Standard output is the program's own.
    eprintln!("$ {}", show(command));
}

/// The command as a person would type it; long feature lists are cut.
fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut text = program.to_string_lossy().into_owned();
    for argument in command.get_args() {
        let argument = argument.to_string_lossy();
        match argument.char_indices().nth(60) {
            Some((cut, _)) => text.extend([" ", &argument[..cut], "..."]),
            None => text.extend([" ", &*argument]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_over_runs() {
        let mut counts = Counts::default();
        counts.add("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n");
        counts.add("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n");
        assert_eq!(counts, Counts { passed: 15, failed: 2 });
    }

    #[test]
    fn other_lines_do_not_count() {
        let mut counts = Counts::default();
        counts.add("running 7 passed; 8 failed;\n");
        counts.add("test result: \n");
        assert_eq!(counts, Counts::default());
    }

    #[test]
    fn failing_commands_are_errors() {
        assert!(run(&mut Command::new("true")).is_ok());
        assert!(run(&mut Command::new("false")).is_err());
        assert!(output(&mut Command::new("no-such-program")).is_err());
    }
}
