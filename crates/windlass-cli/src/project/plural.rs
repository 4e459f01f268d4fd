//! Plurals of kinds, as kubebuilder makes them: the name a resource has in URLs is the plural that
//! people who come from there expect (`Demo` is `demoes`, `Redis` stays `redis`).

/// Words with a plural of their own. Also in compounds: `KvIndex` is `kvindices`.
const WORDS: &[(&str, &str)] = &[
    ("aircraft", "aircraft"),
    ("beef", "beef"),
    ("bison", "bison"),
    ("blues", "blues"),
    ("chassis", "chassis"),
    ("deer", "deer"),
    ("fish", "fish"),
    ("moose", "moose"),
    ("police", "police"),
    ("salmon", "salmon"),
    ("series", "series"),
    ("sheep", "sheep"),
    ("shrimp", "shrimp"),
    ("species", "species"),
    ("swine", "swine"),
    ("trout", "trout"),
    ("tuna", "tuna"),
    ("child", "children"),
    ("foot", "feet"),
    ("goose", "geese"),
    ("man", "men"),
    ("human", "humans"),
    ("mouse", "mice"),
    ("tooth", "teeth"),
    ("woman", "women"),
    ("person", "people"),
    ("bureau", "bureaus"),
    ("criterion", "criteria"),
    ("ganglion", "ganglia"),
    ("lexicon", "lexica"),
    ("phenomenon", "phenomena"),
    ("taxon", "taxa"),
    ("media", "media"),
    ("medium", "media"),
    ("stadium", "stadiums"),
    ("aquarium", "aquaria"),
    ("auditorium", "auditoria"),
    ("symposium", "symposia"),
    ("curriculum", "curriculums"),
    ("quota", "quotas"),
    ("alumnus", "alumni"),
    ("bacillus", "bacilli"),
    ("cactus", "cacti"),
    ("focus", "foci"),
    ("locus", "loci"),
    ("nucleus", "nuclei"),
    ("radius", "radii"),
    ("syllabus", "syllabi"),
    ("corpus", "corpora"),
    ("genus", "genera"),
    ("vertebra", "vertebrae"),
    ("vita", "vitae"),
    ("larva", "larvae"),
    ("apex", "apices"),
    ("codex", "codices"),
    ("index", "indices"),
    ("latex", "latices"),
    ("vertex", "vertices"),
    ("vortex", "vortices"),
    ("appendix", "appendices"),
    ("radix", "radices"),
    ("helix", "helices"),
    ("crisis", "crises"),
    ("ellipsis", "ellipses"),
    ("genesis", "geneses"),
    ("oasis", "oases"),
    ("thesis", "theses"),
    ("base", "bases"),
    ("basis", "bases"),
    ("abuse", "abuses"),
    ("cause", "causes"),
    ("clause", "clauses"),
    ("excuse", "excuses"),
    ("fuse", "fuses"),
    ("house", "houses"),
    ("misuse", "misuses"),
    ("muse", "muses"),
    ("pause", "pauses"),
    ("ache", "aches"),
    ("topaz", "topazes"),
    ("buffalo", "buffaloes"),
    ("potato", "potatoes"),
    ("tomato", "tomatoes"),
    ("equipment", "equipment"),
    ("information", "information"),
    ("jeans", "jeans"),
    ("money", "money"),
    ("news", "news"),
    ("rice", "rice"),
    ("dwarf", "dwarfs"),
    ("hoof", "hoofs"),
    ("thief", "thieves"),
    ("chive", "chives"),
    ("hive", "hives"),
    ("move", "moves"),
    ("movie", "movies"),
    ("cookie", "cookies"),
    ("agenda", "agendas"),
    ("formula", "formulas"),
    ("shoe", "shoes"),
    ("graffiti", "graffiti"),
];

/// Words with a plural of their own, but not in compounds.
const WHOLE_WORDS: &[(&str, &str)] = &[
    ("ox", "oxen"),
    ("louse", "lice"),
    ("die", "dice"),
    ("axis", "axes"),
    ("alias", "aliases"),
    ("use", "uses"),
    ("toe", "toes"),
];

/// Endings, the first that fits counts.
const ENDINGS: &[(&str, &str)] = &[
    ("tive", "tives"),
    ("eaf", "eaves"),
    ("oaf", "oaves"),
    ("afe", "aves"),
    ("arf", "arves"),
    ("rfe", "rves"),
    ("rf", "rves"),
    ("lf", "lves"),
    ("fe", "ves"),
    ("ay", "ays"),
    ("ey", "eys"),
    ("oy", "oys"),
    ("quy", "quies"),
    ("uy", "uys"),
    ("y", "ies"),
    ("eau", "eaux"),
    ("hedron", "hedra"),
    ("ium", "ia"),
    ("seum", "seums"),
    ("eum", "ea"),
    ("dum", "da"),
    ("ulum", "ula"),
    ("imum", "ima"),
    ("trum", "tra"),
    ("antum", "anta"),
    ("atum", "ata"),
    ("entum", "enta"),
    ("trix", "trices"),
    ("iasis", "iases"),
    ("mesis", "meses"),
    ("resis", "reses"),
    ("gnosis", "gnoses"),
    ("opsis", "opses"),
    ("ysis", "yses"),
    ("ouse", "ouses"),
    ("lause", "lauses"),
    ("us", "uses"),
    ("ch", "ches"),
    ("io", "ios"),
    ("sh", "shes"),
    ("ss", "sses"),
    ("ez", "ezzes"),
    ("iz", "izzes"),
    ("tz", "tzes"),
    ("zz", "zzes"),
    ("ano", "anos"),
    ("lo", "los"),
    ("to", "tos"),
    ("oo", "oos"),
    ("o", "oes"),
    ("x", "xes"),
];

/// The plural of a kind, in lower case.
pub(crate) fn plural_of(kind: &str) -> String {
    let word = kind.to_lowercase();
    let whole = || WORDS.iter().chain(WHOLE_WORDS);
    if let Some((_, plural)) = whole().find(|(singular, _)| *singular == word) {
        return (*plural).to_owned();
    }
    if whole().any(|(_, plural)| *plural == word) {
        return word;
    }
    // The later of two words that fit is the longer one, where it matters.
    for (singular, plural) in WORDS.iter().rev().chain(ENDINGS) {
        if word.ends_with(plural) {
            return word;
        }
        if let Some(stem) = word.strip_suffix(singular) {
            return format!("{stem}{plural}");
        }
    }
    if word.ends_with('s') {
        return word;
    }
    word + "s"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What kubebuilder's own library says, one `kind plural` a line.
    const KNOWN: &str = include_str!("plurals.txt");

    #[test]
    fn plurals_are_those_of_kubebuilder() {
        let mut checked = 0;
        for line in KNOWN.lines() {
            let (kind, plural) = line.split_once(' ').unwrap();
            assert_eq!(plural_of(kind), plural, "the plural of {kind}");
            checked += 1;
        }
        assert!(checked > 100);
    }
}
