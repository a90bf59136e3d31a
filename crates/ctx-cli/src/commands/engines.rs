//! `ctx engines`.

use std::process::ExitCode;

use ctx_engine_registry::Registry;
use serde::Serialize;

use crate::args::{Engines, Global};
use crate::out::{BOLD, Cell, Out, table};
use crate::setup;

#[derive(Serialize)]
struct Listing {
    engines: Vec<ctx_engine_registry::EngineEntry>,
    layers: Vec<LayerEntry>,
}

#[derive(Serialize)]
struct LayerEntry {
    id: &'static str,
    source: &'static str,
    order: u32,
    about: &'static str,
}

pub(crate) fn run(global: &Global, args: &Engines, out: &Out) -> anyhow::Result<ExitCode> {
    let config = setup::config(global)?;
    let registry = Registry::collect()?;
    let layers = registry
        .layers()
        .iter()
        .map(|l| LayerEntry { id: l.id, source: l.source, order: l.order, about: l.about })
        .collect();
    let listing = Listing { engines: registry.engine_list(&config)?, layers };
    if args.json {
        out.json(&listing)?;
        return Ok(ExitCode::SUCCESS);
    }
    out.line(format!("{BOLD}Engines{BOLD:#}"))?;
    let rows = listing.engines.iter().map(|e| {
        let mark = if e.selected { "*" } else { " " };
        Vec::<Cell>::from([
            format!("{mark} {}", e.id).into(),
            e.carrier.as_str().into(),
            e.source.as_str().into(),
            e.about.as_str().into(),
        ])
    });
    out.line(table(&[], rows.collect(), 0))?;
    out.line(format!("\n{BOLD}Layers of legacy, in order{BOLD:#}"))?;
    let rows = listing.layers.iter().map(|l| {
        Vec::<Cell>::from([format!("  {}", l.id).into(), l.source.into(), l.about.into()])
    });
    out.line(table(&[], rows.collect(), 0))?;
    Ok(ExitCode::SUCCESS)
}
