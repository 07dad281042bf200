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
        manual handbook guide user_guide report annual_report quarterly_report 10-k 10-q filing prospectus budget
        contract agreement lease polic(?:y|ies) terms_of_service law act code regulation directive statute charter treaty constitution gdpr
        novel book play poem story text chapter section part volume
        document file thesis dissertation paper white_paper study leaflet brochure minutes agenda form specification
        newsletter press_release datasheet letter memo protocol catalogue judg(?:e)?ment proposal
        """),
    "fr": either("""
        manuel guide mode_d'emploi notice rapport rapport_annuel bilan budget enquete etude
        contrat accord bail convention avenant politique loi code reglement directive statut charte traite constitution rgpd
        roman livre piece poeme recit nouvelle texte chapitre section partie tome
        document fichier these memoire brochure livret formulaire norme proces-verba(?:l|ux) pv compte[_-]rendu ordre_du_jour
        bulletin lettre note protocole catalogue cahier_des_charges jugement arrete
        """),
}

RELATIVE = {
    "en": either("""
        mother father parent brother sister wife husband spouse partner son daughter child children grandfather grandmother uncle aunt
        cousin nephew niece widow(?:er)? (?:mother|father|brother|sister|son|daughter)-in-law mentor teacher student rival colleague friend
        author writer director composer painter architect founder co-?founder publisher editor translator producer screenwriter singer
        performer inventor creator designer conductor songwriter artist sculptor photographer narrator biographer presenter host
        owner manufacturer maker supplier landlord tenant contractor subcontractor employer sponsor insurer auditor operator builder
        parent_compan(?:y|ies) subsidiar(?:y|ies) chairman chairwoman chair ceo cfo president head mayor bishop king queen leader
        successor predecessor captain coach commander boss supervisor discoverer developer
        winner holder receiver recipient victim member killer protagonist hero heroine star lead_actor actor actress drummer guitarist
        birthplace place_of_birth home_?town alma_mater club record_label label studio broadcaster country_of_origin
        """),
    "fr": either("""
        mere pere frere sœur soeur femme epouse epoux mari fils fille conjoint compagne compagnon veuve veuf grand-(?:pere|mere)
        oncle tante cousine? neveu niece beau-(?:pere|frere|fils) belle-(?:mere|sœur|soeur|fille) mentor professeur eleve rivale? collegue
        auteur autrice ecrivain realisat(?:eur|rice) composit(?:eur|rice) peintre architecte (?:co)?fondat(?:eur|rice) edit(?:eur|rice)
        traduct(?:eur|rice) product(?:eur|rice) scenariste interprete invent(?:eur|rice) creat(?:eur|rice) sculpt(?:eur|rice) photographe
        narrat(?:eur|rice) romanci(?:er|ere) proprietaire fabricant construct(?:eur|rice) fournisseur bailleur locataire prestataire
        employeur sponsor assureur exploitant sous-traitant maison[_-]mere societe[_-]mere filiale patronne? pdg presidente? maire eveque
        roi reine chef dirigeante? successeur predecesseur capitaine entraineu(?:r|se) laureate? gagnante? vainqueur titulaire victime membre
        assassin heros heroine chanteu(?:r|se) act(?:eur|rice) batteur guitariste developpeur concept(?:eur|rice)
        lieu_de_naissance ville_natale pays_natal pays_d'origine club maison_de_disques
        """),
}
"""Who or what somebody or something has: with `of` or `de` behind it, it describes one thing through another."""

ENTITY = {
    "en": either("""
        person man woman people compan(?:y|ies) firm bank agenc(?:y|ies) countr(?:y|ies) cit(?:y|ies) town village island river lake mountain
        region state province district street school college universit(?:y|ies) institute laborator(?:y|ies) museum hospital church
        organi[sz]ation association part(?:y|ies) group team band brand newspaper magazine journal book novel film movie song album series
        show play opera game building station bridge castle house hotel ship war battle award prize festival
        officer manager scientist researcher poet politician footballer player lawyer doctor engineer character solvent drug device product
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
