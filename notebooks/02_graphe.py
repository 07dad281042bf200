# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Le graphe d'entités : de nom en nom, sans LLM
#
# Une question peut avoir besoin d'un passage qui ne partage aucun mot avec elle. Le graphe y mène par les noms que les passages ont en commun,
# et la trace raconte le chemin. Ce notebook
#
# 1. construit le petit graphe du cours à partir de faits tout prêts, et lui pose deux questions,
# 2. montre ce que le graphe sait entre deux entités,
# 3. fait la même chose avec des textes seuls, dans un index.
#
# Il n'appelle aucun LLM et ne télécharge rien.
#
# *The entity graph, in French: two questions to a small graph of ready facts, the path to each answer, and the same over plain texts.
# [docs/graph.md](../docs/graph.md) says the same in English, and more.*
#
# ## Installer
#
# `offline` apporte un petit modèle d'embedding. Passez cette cellule si vous l'avez déjà.

# %% tags=["skip-execution"]
# %pip install --quiet "llama-index-advanced-rag[offline]"

# %%
from llama_index.core import Document
from llama_index.core.schema import TextNode

from llama_index_advanced_rag import CorpusIndex, EntityGraphRetriever, LexicalRetriever, capture_trace
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.postprocessors.subgraph_context import SubgraphContext

# %% [markdown]
# ## 1. Le graphe du cours
#
# Des passages, et ce qu'ils disent, sous forme de triplets (sujet, prédicat, objet). Les derniers passages n'ont rien à voir avec nos questions, mais
# ils en partagent les mots.

# %%
textes = {
    "bert": "BERT est un modèle de langage.",
    "gpt-4": "GPT-4 est un modèle de langage.",
    "google": "BERT a été créé par Google.",
    "openai": "GPT-4 a été créé par OpenAI.",
    "anthropic": "Claude a été créé par Anthropic.",
    "claude": "Claude utilise le Transformer.",
    "vaswani": "Le Transformer a été proposé par Vaswani.",
    "lyon": "Les entreprises françaises créent des emplois à Lyon.",
    "gothique": "L'architecture gothique a été proposée à Saint-Denis.",
}
triplets = {
    "bert": [("BERT", "est un", "modèle de langage")],
    "gpt-4": [("GPT-4", "est un", "modèle de langage")],
    "google": [("BERT", "créé par", "Google")],
    "openai": [("GPT-4", "créé par", "OpenAI")],
    "anthropic": [("Claude", "créé par", "Anthropic")],
    "claude": [("Claude", "utilise", "Transformer")],
    "vaswani": [("Transformer", "proposé par", "Vaswani")],
}
passages = [TextNode(id_=identifiant, text=texte) for identifiant, texte in textes.items()]
graphe = EntityGraph.from_triples(triplets, texts=textes)
graphe

# %% [markdown]
# Le graphe se place à côté d'un retriever qui existe : ici la recherche par mots, sinon n'importe quel retriever de LlamaIndex.

# %%
mots = LexicalRetriever.from_defaults(nodes=passages, language="fr", similarity_top_k=4)
retriever = EntityGraphRetriever(mots, graphe, nodes=passages, language="fr", similarity_top_k=4)


def demander(retriever, question):
    """Les passages trouvés, chacun avec son chemin."""
    with capture_trace(question) as trace:
        trouves = retriever.retrieve(question)
    for rang, trouve in enumerate(trouves, start=1):
        print(f"{rang}. {trouve.node.get_content()}\n     {trace.for_node(trouve.node_id)[-1].why}")
    return [trouve.node_id for trouve in trouves]


# %% [markdown]
# ### Quelles entreprises ?
#
# Ni Google ni OpenAI ne sont appelés « entreprise » quelque part. Le graphe les atteint par BERT et GPT-4.

# %%
trouves = demander(retriever, "Quelles entreprises ont créé des modèles de langage ?")
assert {"google", "openai"} <= set(trouves)

# %% [markdown]
# ### Deux étapes plus loin
#
# Anthropic a créé Claude, Claude utilise le Transformer, Vaswani l'a proposé : trois passages, un chemin.

# %%
question = "Qui a proposé l'architecture utilisée par le modèle créé par Anthropic ?"
trouves = demander(retriever, question)
assert trouves[:3] == ["anthropic", "claude", "vaswani"]

# %% [markdown]
# La recherche par mots seule donne ceci à la même question :

# %%
[trouve.node_id for trouve in mots.retrieve(question)]

# %% [markdown]
# Le chemin existe aussi pour les programmes :

# %%
with capture_trace(question) as trace:
    retriever.retrieve(question)
trace.for_node("vaswani")[-1].details

# %% [markdown]
# ## 2. Entre deux entités
#
# `SubgraphContext` met devant les passages un nœud qui dit comment les entités de la question sont liées, et quels passages le disent. Il est fait pour
# être lu par un LLM.

# %%
question = "Comment Anthropic et Vaswani sont-ils liés ?"
contexte = SubgraphContext(graphe).postprocess_nodes(retriever.retrieve(question), query_str=question)[0].node
print(contexte.text)
contexte.metadata["chunks"]

# %% [markdown]
# ## 3. Des textes seuls, dans un index
#
# Sans triplets, `CorpusIndex` lit les noms par règles, quand un document arrive. Le message qui suit dit que le modèle d'embedding livré connaît l'anglais
# seulement ; la recherche par mots et le graphe savent le français. Pour chercher aussi par le sens, installez `multilingual` et prenez
# `embed_model="multilingual"`.

# %%
pages = {
    "Anthropic": "Anthropic est une entreprise qui a créé le modèle de langage Claude.",
    "OpenAI": "OpenAI est une entreprise qui a créé le modèle de langage GPT-4.",
    "Google": "Google est une entreprise qui a créé le modèle de langage BERT.",
    "Claude": "Claude répond à des questions et écrit du code. Il repose sur le Transformer.",
    "Transformer": "Le Transformer a remplacé les réseaux récurrents en traduction. On le doit à Ashish Vaswani et à sept autres.",
    "Ashish Vaswani": "Ashish Vaswani a étudié à Ranchi et à Los Angeles.",
    "Maquettes": "Les entreprises qui créent des modèles réduits de bateaux proposent souvent un plan de la coque.",
    "Gothique": "L'architecture gothique a été proposée pour une église près de Paris.",
    "Mode": "L'entreprise a proposé un modèle de manteau.",
}
documents = [Document(id_=titre, text=texte, metadata={"title": titre}) for titre, texte in pages.items()]
index = CorpusIndex.from_documents(documents, embed_model="packaged", language="fr")

question = "Qui a proposé l'architecture utilisée par le modèle créé par Anthropic ?"
trouves = demander(index.as_retriever("hybrid", similarity_top_k=4), question)

# %%
trouves = demander(index.as_retriever("graph", similarity_top_k=4), question)

# %% [markdown]
# Le passage sur le Transformer est là, et le chemin dit comment. Personne n'a écrit de fait ici : les noms sont « nommés ensemble », et c'est tout
# ce que le graphe en sait.
#
# Le graphe suit les changements : un document de plus, et la question suivante en tient compte.

# %%
index.insert(Document(id_="Mistral", text="Mistral a créé Le Chat, qui repose aussi sur le Transformer.", metadata={"title": "Mistral"}))
trouves = demander(index.as_retriever("graph", similarity_top_k=4), "Quelle architecture se trouve derrière ce que fait Mistral ?")

# %% [markdown]
# Les nombres du graphe (`damping`, `prior_share`, `guard`...), le vote d'entités pour les chiffres des rapports, votre `PropertyGraphIndex`, spaCy et
# GLiNER, et les limites : [docs/graph.md](../docs/graph.md).

# %%
index.close()
