//! `ctx eval recall`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ctx_config::SystemRules;
use ctx_core::{Error, ErrorKind};
use ctx_eval::recall::{
    CategoryReport, Conversation, DatasetFormat, RecallReport, RecallSetup, VectorCache, load,
    measure, session,
};
use ctx_memory::archive::SegmentMaker;
use ctx_memory::{EmbeddingModel, MemorySettings, Vectors};
use ctx_runtime::{memory_session, vector_model};
use ctx_terminal::failure::misuse;
use ctx_terminal::format::{counted, escaped, thousands};
use ctx_terminal::out::{BOLD, Cell, DIM, Out, Table};

use crate::args::{EmbedWith, EvalRecall, Global};
use crate::setup;

/// No question waits for a fast answer here.
const DEADLINE: Duration = Duration::from_secs(600);

pub(super) fn run(global: &Global, args: &EvalRecall, out: &Out) -> anyhow::Result<ExitCode> {
    let config = setup::config(global)?;
    let mut section: ctx_memory::Config = config.section()?;
    section.embedding_model = match &args.embedder {
        EmbedWith::Hash => EmbeddingModel::Hash,
        EmbedWith::Transformer(folder) => {
            section.embedding_source = Some(folder.to_string_lossy().into_owned());
            EmbeddingModel::Transformer
        }
        EmbedWith::Http => EmbeddingModel::Http,
    };
    if let Some(weight) = args.weight {
        if !(0.0..=1.0).contains(&weight) {
            let error = Error::new(ErrorKind::InvalidInput, "invalid --weight");
            return Err(misuse(error.with("value", weight).hint("give a number from 0 to 1")));
        }
        section.search.hash_weight = weight;
        section.search.vector_weight = weight;
    }
    let mut memory = MemorySettings::of(&section, vector_model(&config, &section)?);
    let (mut embedder, mut cache) = ("hash".to_owned(), None);
    if let Vectors::Model(model) = &mut memory.vectors {
        embedder = model.embedder.name().to_owned();
        let kept = Arc::new(VectorCache::new(model.embedder.clone(), args.cache.as_deref()));
        model.embedder = kept.clone();
        (model.query_deadline, model.batch_deadline) = (DEADLINE, DEADLINE);
        cache = Some(kept);
    }
    let counter = config.section::<SystemRules>()?.counter;
    let mut conversations = Vec::new();
    for path in &args.paths {
        if args.dataset == DatasetFormat::Sessions {
            let transcript = setup::open(path, out)?;
            let name = memory_session(transcript.header.id.as_deref(), path);
            let maker = SegmentMaker::new("main", &*name, counter);
            let maker = maker.with_redaction(section.redaction);
            conversations.push(session(&name, &transcript, &maker)?);
        } else {
            conversations.extend(load(args.dataset, path)?);
        }
    }
    report(args, &conversations, &RecallSetup { memory, embedder, cache, counter }, out)
}

fn report(
    args: &EvalRecall,
    conversations: &[Conversation],
    recall_setup: &RecallSetup,
    out: &Out,
) -> anyhow::Result<ExitCode> {
    let steps = conversations.iter().map(|c| c.turns.len() + c.questions.len()).sum();
    let bar = out.progress("measuring", steps);
    let measured = setup::block_on(measure(args.dataset, conversations, recall_setup, |done| {
        bar.set_position(done as u64);
    }));
    bar.finish_and_clear();
    let report = measured?;
    report.warnings.iter().for_each(|warning| out.warn(warning));
    if let Some(fault) = recall_setup.cache.as_ref().and_then(|cache| cache.take_fault()) {
        out.warn(fault.to_string());
    }
    out.report(args.json, &report, print)
}

fn print(report: &RecallReport, out: &Out) -> anyhow::Result<()> {
    let RecallReport { dataset, embedder, .. } = report;
    out.line(format!(
        "{BOLD}{dataset}{BOLD:#}{DIM}: {}, {} turns, {}, {} skipped; vectors: {}{DIM:#}",
        counted(report.conversations, "conversation"),
        thousands(report.turns as u64),
        counted(report.all.questions, "question"),
        report.skipped,
        escaped(embedder),
    ))?;
    if report.evidence_repaired + report.evidence_dropped > 0 {
        out.note(format!(
            "{} repaired, {} dropped: they name no turn",
            counted(report.evidence_repaired, "label"),
            report.evidence_dropped,
        ));
    }
    let mut rows = vec![row("all", &report.all)];
    rows.extend(report.by_category.iter().map(|(name, category)| row(name, category)));
    let header = [
        "questions about",
        "n",
        "R@1",
        "R@5",
        "R@10",
        "R@20",
        "R@50",
        "MRR",
        "nDCG@10",
        "in 4,000 tokens",
        "tantivy R@10",
        "FTS5 R@10",
        "unchanged",
        "answered",
    ];
    let spared = &["R@5", "R@20", "MRR", "n", "R@50", "nDCG@10", "R@1", "unchanged", "answered"];
    out.line(Table::new(&header, rows, header.len()).without(spared).fitted())?;
    Ok(())
}

fn row(name: &str, figures: &CategoryReport) -> Vec<Cell> {
    let share = |share: f64| Cell::from(format!("{:.1}", share * 100.0));
    let recall = &figures.recall;
    let mut row = vec![Cell::from(escaped(name)), thousands(figures.questions as u64).into()];
    row.extend([recall.at1, recall.at5, recall.at10, recall.at20, recall.at50].map(share));
    row.extend([figures.mrr, figures.ndcg10, figures.coverage4000].map(share));
    row.extend([figures.tantivy.at10, figures.fts5.at10].map(share));
    row.extend([figures.unchanged, figures.answered].map(|it| it.map_or("-".into(), share)));
    row
}
