//! ARCHITECTURE.md against `cargo metadata`, and the registry against the list of layers.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

const MAP: &str = include_str!("../../ARCHITECTURE.md");

/// The rows of the first table below a heading: first cell to second cell.
fn table(heading: &str) -> BTreeMap<String, String> {
    let section = MAP.split_once(&format!("\n{heading}\n")).expect("the heading is there").1;
    let section = section.split("\n## ").next().unwrap_or_default();
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .filter_map(|line| {
            let mut cells = line.trim_end_matches('|').split('|').map(str::trim);
            Some((cells.next()?.to_owned(), cells.next().unwrap_or_default().to_owned()))
        })
        .filter(|(name, _)| name != "crate")
        .collect()
}

/// Workspace packages and their normal and build dependencies among each other.
fn workspace() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata runs");
    let names: BTreeSet<String> =
        metadata.workspace_packages().iter().map(|p| p.name.to_string()).collect();
    metadata
        .workspace_packages()
        .iter()
        .map(|package| {
            let edges = package
                .dependencies
                .iter()
                .filter(|d| d.kind != DependencyKind::Development && names.contains(&d.name))
                .map(|d| d.name.clone())
                .collect();
            (package.name.to_string(), edges)
        })
        .collect()
}

#[test]
fn every_crate_is_on_the_map_and_nothing_else() {
    let mapped: BTreeSet<_> = table("## Crates").into_keys().collect();
    let real: BTreeSet<_> = workspace().into_keys().collect();
    assert_eq!(mapped, real);
}

#[test]
fn no_edge_that_the_map_does_not_allow() {
    let allowed = table("## Allowed edges");
    for (name, edges) in workspace() {
        let allowed = allowed.get(&name).unwrap_or_else(|| panic!("{name} has no row"));
        if allowed == "*" {
            continue;
        }
        let allowed: BTreeSet<_> =
            allowed.split(", ").filter(|e| !e.is_empty()).map(str::to_owned).collect();
        let extra: Vec<_> = edges.difference(&allowed).collect();
        assert!(extra.is_empty(), "{name} depends on {extra:?}, which ARCHITECTURE.md forbids");
    }
}

#[test]
fn the_registry_holds_exactly_the_linked_layers() {
    let registry = ctx_engine_registry::Registry::collect().expect("no two crates share an id");
    let registered: Vec<_> = registry.layers().iter().map(|l| l.id).collect();
    assert_eq!(registered, ctx_layers::LINKED);
}

#[test]
fn what_lives_in_one_crate_only() {
    let owners = [
        ("clap", "ctx-cli"),
        ("libloading", "ctx-engine-registry"),
        ("reqwest", "ctx-model"),
        ("tantivy", "ctx-memory"),
        ("usearch", "ctx-memory"),
    ];
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata runs");
    for package in metadata.workspace_packages() {
        for dependency in package.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal) {
            let owner = owners.iter().find(|(name, _)| *name == dependency.name);
            if let Some((name, owner)) = owner {
                assert_eq!(package.name.as_str(), *owner, "{name} belongs in {owner}");
            }
        }
    }
}

/// Whether a licence of that expression is granted by one of the allowed.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain.split(" AND ").all(|part| part.split(" OR ").any(|one| allowed.contains(&one.trim())))
}

#[test]
fn the_licences_of_what_is_linked_are_allowed() {
    let deny = include_str!("../../deny.toml");
    let list = deny.split_once("allow = [").expect("a list").1.split_once(']').expect("its end").0;
    let allowed: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .other_options(vec!["--offline".to_owned()])
        .exec()
        .expect("cargo metadata runs");
    let theirs: Vec<_> =
        metadata.packages.iter().filter(|package| package.source.is_some()).collect();
    assert!(theirs.len() > 300);
    for package in theirs {
        let license = package.license.as_deref().unwrap_or_default();
        assert!(is_allowed(license, &allowed), "{}: {license}", package.name);
    }
}
