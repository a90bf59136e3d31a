//! The arguments of `ctx eval recall`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use ctx_core::{Error, ErrorKind};
use ctx_eval::recall::DatasetFormat;

use super::EvalCompact;

#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    /// Measure how well memory finds the answers to questions, over labelled conversations
    Recall(EvalRecall),
    /// Measure what compactions keep of real sessions, by independent labels: what the agent
    /// needed next, planted statements, changed files
    Compact(Box<EvalCompact>),
}

/// Archives each conversation in a memory without files, with the settings of the configuration, asks
/// its questions, and reports how many of the turns that answer them are among the first results,
/// beside the BM25 of tantivy and of SQLite.
///
/// `locomo` is a JSON file with a conversation or a list of them: `conversation` with `session_N`
/// (turns with `dia_id`, `speaker`, `text`) and `session_N_date_time`, and `qa` with `question`,
/// `evidence` and `category`. `beam` is a folder with `chat.json` and `probing_questions.json`, or
/// a folder of such folders. Your own conversations can use either format. `sessions` are recorded
/// sessions of agents: what was read, run or asked for again is a question about what had left the
/// window (docs/memory.md).
#[derive(Debug, Args)]
pub(crate) struct EvalRecall {
    /// The files or folders; for sessions, also ids
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// What they contain: locomo, beam, sessions
    #[arg(long, value_name = "FORM")]
    pub(crate) dataset: DatasetFormat,
    /// The embedding model: hash, transformer:DIR (a folder with config.json, tokenizer.json and
    /// model.safetensors), or http (the server of agents.defaults.memoryContext.embeddingSource)
    #[arg(long, value_name = "WHAT", default_value = "hash")]
    pub(crate) embedder: EmbedWith,
    /// The weight of the vectors in the score, 0 to 1 [default: memoryContext.search]
    #[arg(long, value_name = "SHARE")]
    pub(crate) weight: Option<f32>,
    /// A file that stores vectors for the next run
    #[arg(long, value_name = "FILE")]
    pub(crate) cache: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The embedding model.
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
            _ => Err(Error::new(ErrorKind::InvalidInput, "unknown embedder")
                .with("value", text)
                .hint("use hash, transformer:DIR or http")),
        }
    }
}
