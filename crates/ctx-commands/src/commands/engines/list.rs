//! `ctx engines`: lists the engines and the layers.

use std::process::ExitCode;

use ctx_engine_registry::find::{SearchOutcome, SearchStep};
use ctx_engine_registry::{EngineEntry, EngineState, Registry, SelectFor, Selection};
use ctx_session::FailedEngine;
use ctx_terminal::format::shortened;
use ctx_terminal::out::{BOLD, Cell, DIM, GREEN, Out, RED, Table, YELLOW, table};
use serde::Serialize;

use crate::args::{Engines, Global};
use crate::{engine_health, setup};

/// Maximum length of a reason.
const REASON_CHARS: usize = 400;

#[derive(Serialize)]
struct EnginesReport {
    engines: Vec<Listed>,
    /// The default engine, and what selects it.
    selected: Selection,
    /// Engines selected for single agents and models, with the key that selects them.
    named: Vec<Named>,
    layers: Vec<LayerEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Vec<SearchStep>>,
}

/// An engine, and its recorded failures.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    entry: EngineEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<FailedEngine>,
}

impl Listed {
    fn new(mut entry: EngineEntry, trouble: Option<FailedEngine>) -> Self {
        let is_sound = entry.state == EngineState::Ok && entry.sha256.is_some();
        let trouble = trouble.filter(|trouble| is_sound && trouble.sha256 == entry.sha256);
        if let Some(trouble) = &trouble {
            entry.state = EngineState::Degraded;
            entry.reason = Some(trouble.last_error.message.clone());
        }
        Self { entry, trouble }
    }
}

#[derive(Serialize)]
struct Named {
    key: String,
    engine: String,
}

#[derive(Serialize)]
struct LayerEntry {
    id: &'static str,
    source: &'static str,
    order: u32,
    about: &'static str,
}

pub(super) fn run(global: &Global, args: &Engines, out: &Out) -> anyhow::Result<ExitCode> {
    let config = setup::config(global)?;
    let registry = Registry::collect()?;
    let layers = registry
        .layers()
        .iter()
        .map(|l| LayerEntry { id: l.id, source: l.source, order: l.order, about: l.about })
        .collect();
    let selected = ctx_engine_registry::selected_engine(&config, SelectFor::default())?;
    // The first is the global key, which `selected` covers.
    let named = ctx_engine_registry::named_engines(&config)?.into_iter().skip(1);
    let named = named.map(|(key, engine)| Named { key, engine }).collect();
    let trace = args.trace.then(|| trace(&registry, &selected.id));
    let mut troubles = engine_health::troubles(out);
    let engines = registry.engine_list(&config)?.into_iter();
    let engines = engines.map(|entry| {
        let trouble = troubles.remove(&entry.id);
        Listed::new(entry, trouble)
    });
    let engines = engines.collect();
    let report = EnginesReport { engines, selected, named, layers, trace };
    out.report(args.json, &report, print)
}

/// Returns the steps of the search for all engines. If it does not find the selected engine, adds
/// the steps of a search for that engine.
fn trace(registry: &Registry, selected: &str) -> Vec<SearchStep> {
    let mut steps = registry.search().list().trace.steps;
    for engine in registry.engines() {
        // The found engine is valid, but the built-in engine takes precedence.
        for step in
            steps.iter_mut().filter(|s| s.outcome == SearchOutcome::Found && names(s, engine.id))
        {
            step.outcome = SearchOutcome::PassedOver;
            step.reason = Some(format!("the built-in engine '{}' takes precedence", engine.id));
        }
    }
    let linked = registry.engines().any(|engine| engine.id == selected);
    if !linked && !steps.iter().any(|s| s.outcome == SearchOutcome::Found && names(s, selected)) {
        steps.extend(registry.search().find_traced(selected).1.steps);
    }
    steps
}

fn names(step: &SearchStep, id: &str) -> bool {
    step.path.file_stem().is_some_and(|stem| stem == id)
}

fn print(report: &EnginesReport, out: &Out) -> anyhow::Result<()> {
    out.line(format!("{BOLD}Engines{BOLD:#}"))?;
    // The origin of an engine is in its trace and in the JSON: a path is too long for a table.
    let rows = report.engines.iter().map(|Listed { entry: e, .. }| {
        let mark = if e.selected { "*" } else { " " };
        let state = match e.state {
            EngineState::Ok => Cell::styled("ok", GREEN),
            EngineState::Degraded => Cell::styled("degraded", YELLOW),
            EngineState::Refused => Cell::styled("refused", RED),
        };
        let version = shortened(e.version.as_deref().unwrap_or("-"), 20);
        let id = format!("{mark} {}", shortened(&e.id, 80));
        vec![
            id.into(),
            e.slot.to_string().into(),
            e.carrier.clone().into(),
            version.into(),
            state,
            e.about.clone().into(),
        ]
    });
    let header = ["  engine", "slot", "carrier", "version", "state", "about"];
    let spared = &["version", "carrier"];
    out.line(Table::new(&header, rows.collect(), 0).without(spared).fitted())?;
    let selection = &report.selected;
    let by = selection.source;
    out.line(format!("{DIM}selected: {}, by {by}{DIM:#}", shortened(&selection.id, 80)))?;
    for Named { key, engine } in &report.named {
        let (key, engine) = (shortened(key, 120), shortened(engine, 80));
        out.line(format!("{DIM}selected: {engine}, by {key}{DIM:#}"))?;
    }
    if !report.engines.iter().any(|engine| engine.entry.selected) {
        out.warn(format!("the selected engine '{}' was not found", selection.id));
    }
    for Listed { entry, trouble } in &report.engines {
        match (trouble, &entry.reason) {
            (Some(trouble), _) => {
                out.warn(format!("{} {}", entry.id, engine_health::describe(trouble)));
            }
            (None, Some(reason)) => {
                let hint = entry.hint.as_deref().unwrap_or_default();
                out.warn(format!("{} is rejected: {reason}; {hint}", entry.id));
            }
            (None, None) => {}
        }
    }
    if let Some(steps) = &report.trace {
        print_trace(steps, out)?;
    }
    out.line(format!("\n{BOLD}Layers of legacy, in order{BOLD:#}"))?;
    let rows = report.layers.iter().map(|l| {
        Vec::<Cell>::from([format!("  {}", l.id).into(), l.source.into(), l.about.into()])
    });
    out.line(table(&[], rows.collect(), 0))?;
    Ok(())
}

fn print_trace(steps: &[SearchStep], out: &Out) -> anyhow::Result<()> {
    out.line(format!("\n{BOLD}Search for engines{BOLD:#}"))?;
    for step in steps {
        let (word, style) = match step.outcome {
            SearchOutcome::Absent => ("missing", DIM),
            SearchOutcome::Searched => ("searched", DIM),
            SearchOutcome::PassedOver => ("passed over", YELLOW),
            SearchOutcome::Found => ("found", GREEN),
            SearchOutcome::Refused => ("refused", RED),
        };
        let path = shortened(&step.path.display().to_string(), 160);
        let place = step.place.name();
        out.line(format!("  {style}{word:<11}{style:#} {path} {DIM}({place}){DIM:#}"))?;
        if let Some(reason) = &step.reason {
            out.line(format!("              {}", shortened(reason, REASON_CHARS)))?;
        }
        if let Some(hint) = &step.hint {
            let hint = shortened(hint, REASON_CHARS);
            out.line(format!("              {DIM}{hint}{DIM:#}"))?;
        }
    }
    Ok(())
}
