"""The nouns that the rules share: documents, and what stands in a relation to something else."""


def either(words: str) -> str:
    """An alternation of words, spaces in a word written as `_`, with the plural that adds an s.

    Example:
        >>> import re
        >>> re.findall(either("parent_company film"), "films of parent company")
        ['films', 'parent company']
    """
    return f"(?:{'|'.join(sorted((word.replace('_', ' ') for word in words.split()), key=len, reverse=True))})s?"


DOCUMENT = {
    "en": either("""
        manual handbook guide report 10-k 10-q filing prospectus budget document file paper study thesis leaflet brochure minutes agenda form
        contract agreement lease polic(?:y|ies) law act code regulation directive statute charter treaty gdpr
        novel book play poem text chapter section part volume newsletter letter memo judg(?:e)?ment specification
        """),
    "fr": either("""
        manuel guide notice rapport bilan budget enquete etude document fichier these memoire brochure livret formulaire norme lettre note
        contrat accord bail convention avenant politique loi code reglement directive statut charte traite rgpd
        roman livre piece poeme texte chapitre section partie tome proces-verba(?:l|ux) compte[_-]rendu ordre_du_jour jugement arrete
        """),
}

RELATIVE = {
    "en": either("""
        mother father parent brother sister wife husband spouse partner son daughter child children grandfather grandmother uncle aunt
        cousin nephew niece widow(?:er)? mentor teacher student rival colleague friend
        author writer director composer painter architect founder co-?founder publisher editor translator producer screenwriter singer
        performer inventor creator designer conductor artist photographer
        owner manufacturer maker supplier contractor subcontractor employer landlord tenant sponsor insurer auditor operator builder
        parent_compan(?:y|ies) subsidiar(?:y|ies) chairman chairwoman chair ceo cfo president head mayor bishop king queen leader
        successor predecessor captain coach commander boss supervisor developer
        winner holder receiver recipient victim killer hero heroine star lead_actor actor actress
        birthplace place_of_birth home_?town alma_mater club record_label studio country_of_origin
        """),
    "fr": either("""
        mere pere frere sœur soeur femme epouse epoux mari fils fille conjoint compagne compagnon veuve veuf grand-(?:pere|mere)
        oncle tante cousine? neveu niece mentor professeur eleve rivale? collegue
        auteur autrice ecrivain realisat(?:eur|rice) composit(?:eur|rice) peintre architecte (?:co)?fondat(?:eur|rice) edit(?:eur|rice)
        traduct(?:eur|rice) product(?:eur|rice) scenariste interprete invent(?:eur|rice) creat(?:eur|rice) photographe
        romanci(?:er|ere) proprietaire fabricant construct(?:eur|rice) fournisseur bailleur prestataire
        employeur locataire sponsor assureur exploitant sous-traitant maison[_-]mere societe[_-]mere filiale patronne? pdg presidente? maire eveque
        roi reine chef dirigeante? successeur predecesseur capitaine entraineu(?:r|se) laureate? gagnante? vainqueur titulaire victime
        assassin heros heroine chanteu(?:r|se) act(?:eur|rice) developpeur concept(?:eur|rice)
        lieu_de_naissance ville_natale pays_natal pays_d'origine club
        """),
}
"""Who or what somebody or something has: with `of` or `de` behind it, it describes one thing through another."""

ENTITY = {
    "en": either("""
        person man woman people compan(?:y|ies) firm bank agenc(?:y|ies) countr(?:y|ies) cit(?:y|ies) town village island river lake mountain
        region state province district street school college universit(?:y|ies) institute laborator(?:y|ies) museum hospital church
        organi[sz]ation association part(?:y|ies) group team band brand newspaper magazine journal book novel film movie song album series
        show play opera game building station bridge castle house hotel ship war battle award prize festival
        officer manager scientist researcher poet politician footballer player lawyer doctor engineer character drug device product
        """),
    "fr": either("""
        personne homme gens entreprise societe firme banque agence pays ville village ile fleuve riviere lac montagne region departement rue
        province etat commune ecole lycee universite institut laboratoire musee hopita(?:l|ux) eglise organisation association fondation
        parti groupe equipe troupe marque cabinet maison journal revue livre roman film chanson album serie piece opera jeu batiment immeuble
        gare pont chateau hotel navire bateau guerre bataille prix festival
        responsable scientifique cherche(?:ur|use) poete depute ministre avocate? medecin ingenieur personnage medicament appareil produit
        """),
}
"""What a relative clause describes something through: the country where, l'entreprise qui."""
