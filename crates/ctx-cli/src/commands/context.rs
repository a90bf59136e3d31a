//! `ctx context`.

use std::process::ExitCode;

use ctx_core::{Error, ErrorKind, Snippet, Tokens};
use ctx_memory::vectors::Embedding;
use ctx_memory::workspace::{
    ContextBlock, Trigger, build_context, question_of, rank, should_search,
};
use serde::Serialize;

use crate::args::{Context, Global};
use crate::failure::misuse;
use crate::out::Out;
use crate::setup::{self, parse_tokens};
use crate::words::{counted, harmless_lines, thousands};
use crate::workspace::{self, Opened};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    workspace: &'a std::path::Path,
    question: &'a str,
    /// What of the text would have made ctx look by itself.
    trigger: Option<Said<'a>>,
    budget: Tokens,
    tokens: Tokens,
    /// The block as a request would carry it; null where nothing fits.
    block: Option<&'a str>,
    snippets: Vec<Shown<'a>>,
    /// How many would have fitted, but their files changed while they were looked for.
    stale: usize,
}

#[derive(Serialize)]
struct Said<'a> {
    kind: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    #[serde(flatten)]
    snippet: &'a Snippet,
    in_block: bool,
}

pub(crate) fn run(global: &Global, args: &Context, out: &Out) -> anyhow::Result<ExitCode> {
    let Some(question) = question_of(&args.question) else {
        let error = Error::new(ErrorKind::InvalidInput, "the question says too little");
        return Err(misuse(
            error.hint("ask with three letters or more, or two characters of Chinese"),
        ));
    };
    let opened = workspace::open(global, args.workspace.as_deref(), &args.of)?;
    let Opened { workspace, config, counter, .. } = &opened;
    let budget = match &args.budget {
        Some(text) => parse_tokens(text).map_err(misuse)?,
        None => Tokens(config.budget_tokens),
    };
    workspace::update(workspace, out)?;
    let limit = args.limit.unwrap_or(config.limit) as usize;
    let vector = vector(&opened, question, out)?;
    let vector = vector.as_ref().map(|(embedding, vector)| (embedding, vector.as_slice()));
    let found = workspace.search(question, limit, vector)?;
    let snippets = rank(found.snippets);
    let block = build_context(&snippets, budget, counter);
    if args.json {
        let in_block = block.as_ref().map_or(0, |block| block.snippets);
        let shown = |(at, snippet)| Shown { snippet, in_block: at < in_block };
        out.json(&Report {
            workspace: workspace.folder(),
            question,
            trigger: should_search(&args.question).map(said),
            budget,
            tokens: block.as_ref().map_or(Tokens::ZERO, |block| block.tokens),
            block: block.as_ref().map(|block| block.text.as_str()),
            snippets: snippets.iter().enumerate().map(shown).collect(),
            stale: found.stale,
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    match &block {
        Some(block) => {
            out.line(harmless_lines(&block.text))?;
            note(block, snippets.len(), budget, out);
        }
        None if snippets.is_empty() => out.note("nothing in the workspace fits the question"),
        None => out.note(format!("no snippet fits into {budget} tokens")),
    }
    Ok(ExitCode::SUCCESS)
}

/// The vector of the question, where a model makes them, after those of chunks that had none.
fn vector(
    opened: &Opened,
    question: &str,
    out: &Out,
) -> anyhow::Result<Option<(Embedding, Vec<f32>)>> {
    let Some(model) = opened.model(out)? else { return Ok(None) };
    let asked = async { Ok(opened.workspace.vector_of(&model, question).await) };
    match setup::block_on(asked)? {
        Ok(vector) => {
            workspace::embed(&opened.workspace, &model, out)?;
            Ok(Some(vector))
        }
        Err(error) => {
            out.warn(format!("words alone decide what is found: {error}"));
            Ok(None)
        }
    }
}

fn note(block: &ContextBlock, found: usize, budget: Tokens, out: &Out) {
    let tokens = |tokens: Tokens| thousands(tokens.get());
    let mut note = format!(
        "{} in {} of {} tokens",
        counted(block.snippets, "snippet"),
        tokens(block.tokens),
        tokens(budget)
    );
    if found > block.snippets {
        note.push_str(&format!(
            "; {} more had no room",
            thousands((found - block.snippets) as u64)
        ));
    }
    out.note(note);
}

fn said(trigger: Trigger<'_>) -> Said<'_> {
    match trigger {
        Trigger::Command(text) => Said { kind: "command", text },
        Trigger::File(text) => Said { kind: "file", text },
        Trigger::Word(text) => Said { kind: "word", text },
    }
}
