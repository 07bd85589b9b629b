use crate::failure::{Failure, Outcome};
use crate::files;
use crate::output::{Format, remark};
use serde_json::json;
use stayfast::{Authorized, PublicKey};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Let a peer send to this node: adds a line to the file that `stayfast listen` reads
///
/// A running `stayfast listen` takes the change up within a second or two. A peer whose key is not listed gets no
/// answer at all. Its cursors hang on its name, so a new key under the same name goes on where the old one was: to
/// change a key, write both into its line, with a comma between them, and later remove the old one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stayfast authorize hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo --name pi3 --in 'orders/*'
  stayfast authorize hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo --name pi3 --in logs --in 'metrics/*'

A line of the file:
  KEY[,KEY] NAME [in=PATTERN[,PATTERN]]      # a star stands for any characters; without in= every stream is let in")]
pub struct Arguments {
    /// The peer's public key, as `stayfast pubkey` prints it
    #[arg(value_parser = files::public_key, allow_hyphen_values = true)]
    key: PublicKey,
    /// What this node calls the peer; its cursors hang on it
    #[arg(long, value_parser = word)]
    name: String,
    /// Streams it may send; a star stands for any characters [default: all]
    #[arg(long = "in", value_name = "PATTERN", value_parser = word)]
    patterns: Vec<String>,
    /// The file
    #[arg(long, default_value = "authorized")]
    file: PathBuf,
    #[command(flatten)]
    format: Format,
}

impl Arguments {
    pub fn run(self) -> Outcome {
        let text = match fs::read_to_string(&self.file) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|e| Failure::file(&self.file, &e))?,
        };
        let key = self.key.to_string();
        check_new(&self.file, &text, &key, &self.name)?;
        let mut line = format!("{key} {}", self.name);
        if !self.patterns.is_empty() {
            line.push_str(&format!(" in={}", self.patterns.join(",")));
        }
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        append(&self.file, &format!("{gap}{line}\n")).map_err(|e| Failure::file(&self.file, &e))?;
        for (number, what) in wrong_lines(&text) {
            let file = self.file.display();
            remark(format!(
                "{file} line {number}: {what}; it lets nobody in, and `stayfast listen` will not start with it"
            ));
        }
        let json = json!({ "file": self.file, "key": key, "name": self.name, "in": self.patterns });
        self.format.print(&json, &format!("{}: {line}", self.file.display()))
    }
}

/// A name or pattern that fits into a line.
fn word(text: &str) -> Result<String, String> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == ',' || c == '#' || c == '=';
    match text.is_empty() || text.contains(bad) {
        true => Err("it must not be empty, nor hold blanks, commas, # or =".to_string()),
        false => Ok(text.to_string()),
    }
}

/// Lines that are not understood, with their numbers.
fn wrong_lines(text: &str) -> impl Iterator<Item = (usize, String)> {
    text.lines().enumerate().filter_map(|(at, line)| Some((at + 1, Authorized::parse(line).err()?)))
}

/// Neither the key nor the name may stand there already: one key with two names would have two sets of cursors.
fn check_new(file: &Path, text: &str, key: &str, name: &str) -> Outcome {
    for (number, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line)) {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let (Some(keys), at) = (words.next(), format!("{} line {number}", file.display())) else { continue };
        if keys.split(',').any(|known| known == key) {
            return Err(Failure::failed(format!("{at} has this key already: change that line")));
        }
        if words.next() == Some(name) {
            let advice = "to change its key, add the new one there with a comma; a line of its own needs another name";
            return Err(Failure::failed(format!("{at} is {name} already: {advice}")));
        }
    }
    Ok(())
}

/// In one write, so that a reader sees the whole line or nothing of it.
fn append(file: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
