use crate::failure::Outcome;
use crate::files;
use crate::output::Format;
use serde_json::json;
use std::path::PathBuf;

/// Make a new identity: a key file that only you can read
///
/// Prints the public key, by which the other side knows this one. The file is all there is to the identity. Moving a
/// node to another machine takes it along; a backup should not hold it. An existing file is never overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stayfast keygen edge.key
  ssh hub stayfast authorize $(stayfast keygen edge.key) --name edge --in logs")]
pub struct Arguments {
    /// The key file to make
    file: PathBuf,
    #[command(flatten)]
    format: Format,
}

impl Arguments {
    pub fn run(self) -> Outcome {
        let identity = files::make_identity(&self.file)?;
        let public = identity.public().to_string();
        self.format.print(&json!({ "file": self.file, "public_key": public }), &public)
    }
}
