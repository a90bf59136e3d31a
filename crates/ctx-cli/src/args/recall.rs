//! What can be asked of `ctx eval recall`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use ctx_core::{Error, ErrorKind};
use ctx_eval::recall::Form;

#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    /// Measure how well memory finds what answers a question, over labelled conversations
    Recall(EvalRecall),
}

/// Indexes each conversation one turn a segment, asks its questions, and says how many of the turns
/// that answer them come among the first.
///
/// `locomo` is a JSON file with a conversation or a list of them: `conversation` with `session_N` (turns
/// with `dia_id`, `speaker`, `text`) and `session_N_date_time`, and `qa` with `question`, `evidence` and
/// `category`. `beam` is a folder with `chat.json` and `probing_questions.json`, or a folder of such
/// folders. Conversations of your own will do in either form.
#[derive(Debug, Args)]
pub(crate) struct EvalRecall {
    /// The file or folder
    pub(crate) path: PathBuf,
    /// The form of the labelled conversations: locomo, beam
    #[arg(long, value_name = "FORM")]
    pub(crate) dataset: Form,
    /// What makes vectors: hash, transformer:DIR (a folder with config.json, tokenizer.json and
    /// model.safetensors), or http (the server of agents.defaults.memoryContext.embeddingSource)
    #[arg(long, value_name = "WHAT", default_value = "hash")]
    pub(crate) embedder: EmbedWith,
    /// The share of the vectors in the score, 0 to 1 [default: 0.5, for hashes 0.3]
    #[arg(long, value_name = "SHARE")]
    pub(crate) weight: Option<f32>,
    /// A file that keeps vectors for the next run
    #[arg(long, value_name = "FILE")]
    pub(crate) cache: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What makes vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EmbedWith {
    Hash,
    Transformer(PathBuf),
    Http,
}

impl FromStr for EmbedWith {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split_once(':') {
            Some(("transformer", folder)) if !folder.is_empty() => {
                Ok(Self::Transformer(folder.into()))
            }
            None if text == "hash" => Ok(Self::Hash),
            None if text == "http" => Ok(Self::Http),
            _ => Err(Error::new(ErrorKind::InvalidInput, "nothing that makes vectors")
                .with("value", text)
                .hint("hash, transformer:DIR and http are known")),
        }
    }
}
