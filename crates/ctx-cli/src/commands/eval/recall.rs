//! `ctx eval recall`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use ctx_core::{Counter, CounterKind, Embedder, Error, ErrorKind};
use ctx_eval::recall::{
    CategoryReport, RecallReport, RecallSetup, VectorCache, Vectors, load, measure,
};
use ctx_memory::EmbeddingModel;
use ctx_runtime::vector_model;
use ctx_search::{HashEmbedder, SearchSettings};

use crate::args::{EmbedWith, EvalRecall, Global};
use crate::failure::misuse;
use crate::format::{counted, escaped, thousands};
use crate::out::{BOLD, Cell, DIM, Out, Table};
use crate::setup;

pub(super) fn run(global: &Global, args: &EvalRecall, out: &Out) -> anyhow::Result<ExitCode> {
    let settings = SearchSettings::default();
    let (embedder, default_weight): (Arc<dyn Embedder>, f32) = match &args.embedder {
        EmbedWith::Hash => (Arc::new(HashEmbedder), settings.hash_weight),
        EmbedWith::Transformer(folder) => (transformer(folder)?, settings.vector_weight),
        EmbedWith::Http => (http(global)?, settings.vector_weight),
    };
    let weight = args.weight.unwrap_or(default_weight);
    if !(0.0..=1.0).contains(&weight) {
        let error = Error::new(ErrorKind::InvalidInput, "invalid --weight");
        return Err(misuse(error.with("value", weight).hint("give a number from 0 to 1")));
    }
    let conversations = load(args.dataset, &args.path)?;
    let mut cache = args.cache.as_deref().map(VectorCache::open).unwrap_or_default();
    let vectors = Vectors { embedder: &*embedder, weight, cache: &mut cache };
    let counter = Counter::new(CounterKind::Chars4);
    let recall_setup = RecallSetup { settings, counter };
    let steps = conversations.iter().map(|c| c.turns.len() + c.questions.len()).sum();
    let bar = out.progress("measuring", steps);
    let measured =
        setup::block_on(measure(args.dataset, &conversations, &recall_setup, vectors, |done| {
            bar.set_position(done as u64);
        }));
    bar.finish_and_clear();
    let report = measured?;
    if let Some(fault) = cache.take_fault() {
        out.warn(fault.to_string());
    }
    out.report(args.json, &report, print)
}

/// Returns the server and the model configured for memory.
fn http(global: &Global) -> anyhow::Result<Arc<dyn Embedder>> {
    let config = setup::config(global)?;
    let mut section: ctx_memory::Config = config.section()?;
    section.embedding_model = EmbeddingModel::Http;
    let model = vector_model(&config, &section)?;
    // Hashes need no model.
    Ok(model.map_or_else(|| Arc::new(HashEmbedder) as Arc<dyn Embedder>, |model| model.embedder))
}

#[cfg(feature = "transformer")]
fn transformer(folder: &Path) -> anyhow::Result<Arc<dyn Embedder>> {
    Ok(Arc::new(ctx_search::TransformerEmbedder::open(folder)?))
}

#[cfg(not(feature = "transformer"))]
fn transformer(_folder: &Path) -> anyhow::Result<Arc<dyn Embedder>> {
    let error = Error::new(ErrorKind::Capability, "this build cannot run an embedding model");
    Err(misuse(error.hint("build with `cargo build -p ctx-cli --features transformer`")))
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
        "R@5",
        "R@10",
        "R@20",
        "R@50",
        "MRR",
        "nDCG@10",
        "in 4,000 tokens",
    ];
    let spared = &["R@5", "R@20", "MRR", "n", "R@50", "nDCG@10"];
    out.line(Table::new(&header, rows, header.len()).without(spared).fitted())?;
    Ok(())
}

fn row(name: &str, figures: &CategoryReport) -> Vec<Cell> {
    let share = |share: f64| Cell::from(format!("{:.1}", share * 100.0));
    let recall = &figures.recall;
    let mut row = vec![Cell::from(escaped(name)), thousands(figures.questions as u64).into()];
    row.extend([recall.at5, recall.at10, recall.at20, recall.at50].map(share));
    row.extend([figures.mrr, figures.ndcg10, figures.coverage4000].map(share));
    row
}
