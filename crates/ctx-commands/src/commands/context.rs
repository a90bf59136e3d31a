//! `ctx context`.

use std::process::ExitCode;

use ctx_core::{Error, ErrorKind, Snippet, Tokens};
use ctx_search::vectors::Embedding;
use ctx_terminal::failure::misuse;
use ctx_terminal::format::{counted, escaped_lines, thousands};
use ctx_terminal::out::Out;
use ctx_workspace::{ContextBlock, Trigger, build_context, question_of, rank, should_search};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{Context, Global};
use crate::setup::{self, parse_tokens};
use crate::workspace::{self, OpenWorkspace};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ContextReport<'a> {
    workspace: &'a std::path::Path,
    question: &'a str,
    /// The part of the text that would trigger the search automatically.
    trigger: Option<Value>,
    budget: Tokens,
    tokens: Tokens,
    /// The block that a request would contain; null if nothing fits.
    block: Option<&'a str>,
    snippets: Vec<SnippetRow<'a>>,
    /// Number of matches dropped because their files changed during the search.
    stale: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SnippetRow<'a> {
    #[serde(flatten)]
    snippet: &'a Snippet,
    in_block: bool,
}

pub(crate) fn run(global: &Global, args: &Context, out: &Out) -> anyhow::Result<ExitCode> {
    let asked = args.question.join(" ");
    let Some(question) = question_of(&asked) else {
        let error = Error::new(ErrorKind::InvalidInput, "the question is too short");
        return Err(misuse(error.hint("write at least three letters, or two Chinese characters")));
    };
    let opened = workspace::open(global, args.workspace.as_deref(), &args.of)?;
    let OpenWorkspace { workspace, config, counter, .. } = &opened;
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
        let shown = |(at, snippet)| SnippetRow { snippet, in_block: at < in_block };
        out.json(&ContextReport {
            workspace: workspace.folder(),
            question,
            trigger: should_search(&asked).map(trigger_report),
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
            out.line(escaped_lines(&block.text))?;
            note(block, snippets.len(), budget, out);
        }
        None if snippets.is_empty() => out.note("nothing in the workspace matches the question"),
        None => out.note(format!("no snippet fits into {budget} tokens")),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the vector of the question, and computes missing vectors of chunks. `None` without a
/// model, or if it fails.
fn vector(
    opened: &OpenWorkspace,
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
            out.warn(format!("searching by words only, without vectors: {error}"));
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
            "; {} more did not fit",
            thousands((found - block.snippets) as u64)
        ));
    }
    out.note(note);
}

fn trigger_report(trigger: Trigger<'_>) -> Value {
    let (kind, text) = match trigger {
        Trigger::Command(text) => ("command", text),
        Trigger::File(text) => ("file", text),
        Trigger::Word(text) => ("word", text),
    };
    json!({ "kind": kind, "text": text })
}
