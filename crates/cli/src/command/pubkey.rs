use crate::failure::Outcome;
use crate::files;
use crate::output::Format;
use serde_json::json;
use std::path::PathBuf;

/// Print the public key of a key file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stayfast pubkey edge.key
  stayfast send hub:4711 --peer $(ssh hub stayfast pubkey hub.key) --outbox edge.db --stream logs app.log")]
pub struct Arguments {
    /// A key file made by `stayfast keygen`
    file: PathBuf,
    #[command(flatten)]
    format: Format,
}

impl Arguments {
    pub fn run(self) -> Outcome {
        let public = files::identity(&self.file)?.public().to_string();
        self.format.print(&json!({ "file": self.file, "public_key": public }), &public)
    }
}
