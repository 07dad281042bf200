import numpy as np
import pytest

from llama_index_advanced_rag.ranking.bm25 import inverse_document_frequency, length_norms, term_contributions
from llama_index_advanced_rag.stores.postings_store import PostingsStore
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

FRENCH = {
    "1": "Le retrieval augmented generation combine recherche et génération",
    "2": "Les embeddings vectoriels capturent la sémantique des phrases",
    "3": "BM25 est une méthode de recherche basée sur les mots clés",
    "4": "Les graphes de connaissances représentent des relations entre entités",
    "5": "Le re-ranking améliore la précision de la récupération",
    "6": "Les transformers utilisent le mécanisme d attention",
    "7": "La recherche hybride combine dense et sparse",
    "8": "Le fine-tuning adapte un modèle pré-entrainé à une tâche spécifique",
}


def test_golden_values_of_the_french_corpus():
    store = PostingsStore(TextAnalyzer("none", token_pattern=r"\S+"))
    store.add(list(FRENCH), list(FRENCH.values()))
    hits = store.search("recherche hybride dense sparse", top_k=8)
    assert [(node_id, round(score, 3)) for node_id, score in hits] == [("7", 6.865), ("1", 0.970), ("3", 0.834)]


def test_idf_is_positive_even_for_a_term_in_every_text():
    assert inverse_document_frequency(1, 1) > 0
    assert inverse_document_frequency(1000, 1) > inverse_document_frequency(1000, 500) > inverse_document_frequency(1000, 1000) > 0


@pytest.mark.parametrize(("k1", "b"), [(0.0, 0.0), (1.5, 0.75), (2.0, 1.0)])
def test_contributions_grow_with_frequency_and_shrink_with_length(k1, b):
    norms = length_norms(np.array([10, 10, 30]), average_length=10.0, k1=k1, b=b)
    values = term_contributions(np.array([1, 2, 2]), norms, idf=1.0, k1=k1)
    assert values[1] >= values[0] > 0
    assert values[2] <= values[1]
    assert values.max() <= k1 + 1
